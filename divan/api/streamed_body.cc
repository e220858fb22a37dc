#include "divan/api/streamed_body.h"

#include "divan/api/call.h"
#include "divan/http/multipart.h"

namespace divan::api {
namespace {

constexpr std::uint64_t kMaxDiscardedBytes = 1 << 20;

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

std::optional<std::uint64_t> streamed_body(const http::Request& head) {
  if (head.method() != "PUT") return std::nullopt;
  try {
    auto path = decoded_path(head);
    split_design_id(path);
    const bool is_related =
        http::is_media_type(head.header("Content-Type").value_or(""), "multipart/related");
    if (names_attachment(path) || (is_related && names_document(path))) return UINT64_MAX;
  } catch (const Error&) {}  // the request is refused
  return std::nullopt;
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

Async<void> discard_body(const Context& context, Call& call) {
  const auto& exchange = call.exchange();
  if (!exchange->has_streamed_body() || exchange->closed()) co_return;
  // A client that waits for "100 Continue" has sent nothing yet.
  if (call.header("Expect") || call.content_length().value_or(0) > kMaxDiscardedBytes) co_return;
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
