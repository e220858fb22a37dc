#include "divan/js/requests.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::js {
namespace {

using protocol::RequestKind;

// The most bytes of a request's head.
constexpr std::size_t kHeadBytes = 64;

std::uint32_t milliseconds(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 1, 1 << 30));
}

std::string begin_request(RequestKind kind, const Limits& limits, std::size_t size) {
  std::string frame;
  frame.reserve(kHeadBytes + size);
  frame.append(4, '\0');
  protocol::put_u8(frame, static_cast<std::uint8_t>(kind));
  protocol::put_u32(frame, milliseconds(limits.invocation.value_or(kDefaultInvocation)));
  protocol::put_u32(frame, milliseconds(limits.batch));
  return frame;
}

std::string begin_request(RequestKind kind, std::uint32_t slot, const Limits& limits, std::size_t size) {
  auto frame = begin_request(kind, limits, size);
  protocol::put_u32(frame, slot);
  return frame;
}

[[noreturn]] void throw_too_large() {
  throw Error(413, "too_large",
              fmt::format("The input of a JavaScript function exceeds {} bytes.", protocol::kMaxFrame));
}

void check_fits(std::size_t size) {
  if (size > protocol::kMaxFrame - kHeadBytes) throw_too_large();
}

// Returns how many of the first `items` fit into a frame; `size_of` returns the size of each.
template <class Items, class SizeOf>
std::size_t count_fitting(const Items& items, const SizeOf& size_of) {
  std::size_t count = 0;
  std::size_t space = protocol::kMaxFrame - kHeadBytes;
  for (const auto& item : items) {
    const std::size_t size = size_of(item);
    if (size > space) break;
    space -= size;
    ++count;
  }
  if (count == 0 && !items.empty()) throw_too_large();
  return count;
}

// An upper bound: each character of an id takes up to six bytes as JSON.
std::size_t size_of_group(const ReduceGroup& group) {
  std::size_t size = 16;
  for (const auto& row : group) size += row.key.size() + row.value.size() + 6 * row.id.size() + 16;
  return size;
}

// Appends a JSON array as a text of the protocol; `append_row` appends the element of each row.
template <class AppendRow>
void put_array(std::string& frame, const ReduceGroup& group, const AppendRow& append_row) {
  const auto length_at = frame.size();
  protocol::put_u32(frame, 0);
  frame += '[';
  for (const auto& row : group) {
    append_row(row);
    frame += ',';
  }
  if (!group.empty()) frame.pop_back();
  frame += ']';
  protocol::put_u32_at(frame, length_at, static_cast<std::uint32_t>(frame.size() - length_at - 4));
}

}  // namespace

std::string load_request(std::uint32_t slot, std::span<const Function> functions, const Limits& limits,
                         std::string_view root) {
  std::size_t size = kHeadBytes + root.size();
  for (const auto& function : functions) size += function.name.size() + function.source.size() + 8;
  if (functions.size() > protocol::kMaxFunctions || size > protocol::kMaxFrame) {
    throw bad_request("The design document has too many functions, or they are too long.");
  }
  auto frame = begin_request(RequestKind::load, slot, limits, size);
  protocol::put_text(frame, root);
  protocol::put_u32(frame, functions.size());
  for (const auto& function : functions) {
    protocol::put_text(frame, function.name);
    protocol::put_text(frame, function.source);
  }
  protocol::finish_frame(frame);
  return frame;
}

std::size_t fitting(std::span<const std::string_view> documents) {
  return count_fitting(documents, [](std::string_view document) { return document.size() + 4; });
}

std::size_t fitting(std::span<const ReduceGroup> groups) { return count_fitting(groups, size_of_group); }

std::size_t fitting(std::span<const Arguments> calls) {
  return count_fitting(calls, [](const Arguments& call) { return call.first.size() + call.last.size() + 8; });
}

std::string map_request(std::uint32_t slot, std::span<const std::string_view> documents,
                        const Limits& limits) {
  std::size_t size = 0;
  for (const auto document : documents) size += document.size() + 4;
  auto frame = begin_request(RequestKind::map, slot, limits, size);
  protocol::put_u32(frame, documents.size());
  for (const auto document : documents) protocol::put_text(frame, document);
  protocol::finish_frame(frame);
  return frame;
}

std::string reduce_request(std::uint32_t slot, bool rereduce, std::span<const ReduceGroup> groups,
                           const Limits& limits) {
  auto frame = begin_request(RequestKind::reduce, slot, limits, 0);
  protocol::put_u8(frame, rereduce ? 1 : 0);
  protocol::put_u32(frame, groups.size());
  for (const auto& group : groups) {
    if (rereduce) {
      protocol::put_text(frame, "null");
    } else {
      put_array(frame, group, [&](const ReduceRow& row) {
        frame.append("[").append(row.key).append(",");
        json::append_string(frame, row.id);
        frame += ']';
      });
    }
    put_array(frame, group, [&](const ReduceRow& row) { frame += row.value; });
  }
  protocol::finish_frame(frame);
  return frame;
}

std::string apply_request(std::uint32_t slot, ResultKind result, std::span<const Arguments> calls,
                          const Limits& limits) {
  auto frame = begin_request(RequestKind::apply, slot, limits, 0);
  protocol::put_u8(frame, static_cast<std::uint8_t>(result));
  protocol::put_u32(frame, calls.size());
  std::optional<std::string_view> previous;
  for (const auto& [first, last] : calls) {
    DIVAN_CHECK(!last.empty(), "a call has no last arguments");
    protocol::put_text(frame, first);
    protocol::put_text(frame, result == ResultKind::truth && last == previous ? std::string_view() : last);
    previous = last;
  }
  protocol::finish_frame(frame);
  return frame;
}

std::string list_request(std::uint32_t slot, std::string_view arguments, std::string_view rows,
                         const Limits& limits) {
  const std::size_t size = arguments.size() + rows.size();
  check_fits(size);
  auto frame = begin_request(RequestKind::list, slot, limits, size);
  protocol::put_text(frame, arguments);
  protocol::put_text(frame, rows);
  protocol::finish_frame(frame);
  return frame;
}

std::string rows_request(std::string_view rows, bool is_last, const Limits& limits) {
  check_fits(rows.size());
  auto frame = begin_request(RequestKind::rows, limits, rows.size());
  protocol::put_u8(frame, is_last ? 1 : 0);
  protocol::put_text(frame, rows);
  protocol::finish_frame(frame);
  return frame;
}

}  // namespace divan::js
