#include "divan/kv/check.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/kv/tuple.h"

namespace divan::kv {
namespace {

// Far beyond documents, data of jobs and rows of views.
constexpr std::size_t kMaxChunkedBytes = 64 << 20;

}  // namespace

std::string readable(std::string_view text) {
  const bool is_text = is_utf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text)) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

void Findings::add(std::string_view what, std::string_view key) {
  if (kept_.size() >= kMaxKept) {
    ++count_;
    return;
  }
  add(std::string_view(fmt::format("{}: {}", tuple::describe(key), what)));
}

void Findings::add(const Findings& more) {
  for (const auto& text : more.kept_) add(text);
  count_ += more.count_ - more.kept_.size();
}

bool ChunkedValue::add(std::int64_t number, std::string_view piece) {
  const bool next = number == chunks_ && last_bytes_ == kChunkBytes;
  last_bytes_ = piece.size();
  chunks_ = number < INT64_MAX ? number + 1 : number;
  bytes_ += piece.size();
  whole_ = whole_ && next && bytes_ <= kMaxChunkedBytes;
  if (whole_) text_ += piece;
  return next;
}

std::optional<std::string_view> ChunkedValue::text() const {
  return whole_ ? std::optional<std::string_view>(text_) : std::nullopt;
}

std::optional<std::string> RowSource::get(std::string_view key) {
  std::optional<std::string> found;
  scan({std::string(key), std::string(key) + '\0'}, [&](std::string_view, std::string_view value) {
    found = value;
    return false;
  });
  return found;
}

bool has_shape(std::string_view packed, std::string_view shape) {
  tuple::Reader reader(packed);
  for (const char element : shape) {
    bool taken = false;
    switch (element) {
      case 's': taken = reader.take_string().has_value(); break;
      case 'b': taken = reader.take_bytes().has_value(); break;
      case 'i': taken = reader.take_int().has_value(); break;
      case 't': taken = reader.take_bool().has_value(); break;
      case 'v': taken = reader.take_versionstamp().has_value(); break;
      default: break;
    }
    if (!taken) return false;
  }
  return reader.at_end();
}

bool is_beyond(const Versionstamp& stamp, Version version) {
  return read_u64(stamp.bytes()) > static_cast<std::uint64_t>(version);
}

}  // namespace divan::kv
