#include "divan/api/page_stream.h"

#include "divan/api/function_threads.h"
#include "divan/api/request_waiter.h"

namespace divan::api {
namespace {

// Unsent bytes above which reading of pages pauses.
constexpr std::size_t kMaxUnsent = 512 << 10;
constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

Async<RouteResult> stream_pages(const Context& context, Call& call, std::unique_ptr<PageSource> source,
                                std::string etag) {
  http::Response head = json_response(200, "");
  head.body.clear();
  if (!etag.empty()) head.headers.push_back({"ETag", std::move(etag)});
  return stream_pages(context, call, std::move(source), std::move(head));
}

Async<RouteResult> stream_pages(const Context& context, Call& call, std::unique_ptr<PageSource> source,
                                http::Response head) {
  RequestWaiter waiter(context, call);
  http::Exchange& exchange = *call.exchange();
  for (;;) {
    std::string page;
    bool more = false;
    const auto read = [&] { more = source->next(page); };
    if (const auto database = source->searched_database()) {
      co_await call.executor().run_on(context.function_threads, *database, FunctionUse::search, read);
    } else {
      read();
    }
    if (!exchange.responded() && !more) {
      head.body = std::move(page);
      co_return std::move(head);
    }
    if (page.empty() && more) {  // until there is something to send, an error can have its own status
      check_connected(exchange);
      continue;
    }
    if (!exchange.responded()) exchange.start(std::move(head));
    // In pieces, since a page with attachments may be larger than what a connection may have unsent.
    const std::size_t size = page.size();
    for (std::size_t at = 0; at < size; at += kPieceBytes) {
      exchange.write(size <= kPieceBytes ? std::move(page) : page.substr(at, kPieceBytes));
      while (exchange.unsent() > kMaxUnsent) {
        check_connected(exchange);
        exchange.on_drained(waiter.callback());
        co_await waiter.wait();
      }
    }
    if (!more) {
      exchange.end();
      co_return std::nullopt;
    }
    check_connected(exchange);
  }
}

}  // namespace divan::api
