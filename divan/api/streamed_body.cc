#include "divan/api/streamed_body.h"

#include "divan/api/call.h"

namespace divan::api {
namespace {

constexpr std::uint64_t kMaxDiscardedBytes = 1 << 20;
constexpr std::size_t kCollectedPieceBytes = 1 << 20;

}  // namespace

Async<http::StreamedBodyPart> read_body(RequestWaiter& waiter, std::size_t bytes) {
  if (!waiter.call().has_streamed_body()) co_return http::StreamedBodyPart{waiter.call().take_body(), true};
  http::Exchange& exchange = waiter.exchange();
  for (;;) {
    auto part = exchange.take_streamed_body();
    if (part.is_last || !part.data.empty()) co_return part;
    exchange.read_body(bytes, waiter.callback());
    co_await waiter.wait();
  }
}

Async<void> collect_body(const Context& context, Call& call) {
  const auto& exchange = call.exchange();
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
