#include "divan/api/streamed_body.h"

#include <algorithm>

#include "divan/api/call.h"
#include "divan/http/multipart.h"

namespace divan::api {
namespace {

constexpr std::uint64_t kMaxDiscardedBytes = 1 << 20;
constexpr std::size_t kCollectedPieceBytes = 1 << 20;

bool names_attachment(const std::vector<std::string>& path) {
  if (path.size() < 3 || !is_database(path[0])) return false;
  if (path[1] == "_design") return path.size() >= 4 && !path[3].starts_with('_');
  return !path[1].starts_with('_');
}

bool names_document(const std::vector<std::string>& path) {
  if (path.size() < 2 || !is_database(path[0])) return false;
  if (path[1] == "_design") return path.size() == 3;
  return path.size() == 2 && !path[1].starts_with('_');
}

}  // namespace

bool has_attachments(const http::Request& head) {
  if (head.method() != "PUT") return false;
  const bool is_related = http::is_media_type(head.header("Content-Type").value_or(""), "multipart/related");
  // The path of a document, "/db/doc", need not be decoded.
  if (!is_related && std::ranges::count(head.path(), '/') <= 2) return false;
  try {
    auto path = decoded_path(head);
    split_design_id(path);
    return names_attachment(path) || (is_related && names_document(path));
  } catch (const Error&) { return false; }  // the request is refused
}

http::StreamedBody streamed_bodies(std::uint64_t max_bytes) {
  return [max_bytes](const http::Request& head) -> std::optional<std::uint64_t> {
    if (has_attachments(head)) return UINT64_MAX;
    // A login has no user yet.
    const bool is_login = head.path() == "/_session";
    const auto length = content_length(head);
    if (is_login || (length && *length <= kMaxShortBody)) return std::nullopt;
    return max_bytes;
  };
}

Async<http::StreamedBodyPart> read_body(RequestWaiter& waiter, std::size_t bytes) {
  http::Exchange& exchange = waiter.exchange();
  if (!exchange.has_streamed_body()) co_return http::StreamedBodyPart{exchange.take_body(), true};
  for (;;) {
    auto part = exchange.take_streamed_body();
    if (part.is_last || !part.data.empty()) co_return part;
    exchange.read_body(bytes, waiter.callback());
    co_await waiter.wait();
  }
}

Async<void> collect_body(const Context& context, Call& call) {
  const auto& exchange = call.exchange();
  if (!exchange->has_streamed_body() || has_attachments(exchange->request())) co_return;
  const auto& user = call.user().name;
  BodyMemory::Reservation memory(context.body_memory, user.empty() ? "@" + exchange->request().peer() : user);
  const auto reserve = [&memory](std::size_t bytes) {
    const auto limit = memory.add(bytes);
    if (limit == MemoryLimit::none) return;
    throw Error(503, "service_unavailable",
                limit == MemoryLimit::of_one ? "The user's other requests hold too much memory."
                                             : "The requests of all users hold too much memory.");
  };
  const auto length = content_length(exchange->request());
  reserve(length.value_or(0));
  RequestWaiter waiter(context, call);
  std::string body;
  for (bool is_last = false; !is_last;) {
    const auto part = co_await read_body(waiter, kCollectedPieceBytes);
    if (!length) reserve(part.data.size());
    body += part.data;
    is_last = part.is_last;
  }
  call.set_body(std::move(body), std::move(memory));
}

Async<void> discard_body(const Context& context, Call& call) {
  const auto& exchange = call.exchange();
  if (!exchange->has_streamed_body() || exchange->closed()) co_return;
  // A client that waits for "100 Continue" has sent nothing yet.
  if (call.header("Expect") || content_length(exchange->request()).value_or(0) > kMaxDiscardedBytes)
    co_return;
  RequestWaiter waiter(context, call);
  std::uint64_t left = kMaxDiscardedBytes;
  try {
    for (bool is_last = false; !is_last;) {
      const auto part = co_await read_body(waiter, kMaxDiscardedBytes);
      if (part.data.size() > left) co_return;
      left -= part.data.size();
      is_last = part.is_last;
    }
  } catch (const Error&) {}  // the connection ends with the response
}

}  // namespace divan::api
