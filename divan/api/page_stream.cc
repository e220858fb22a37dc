#include "divan/api/page_stream.h"

#include "divan/api/request_waiter.h"

namespace divan::api {
namespace {

// Unsent bytes above which reading of pages pauses.
constexpr std::size_t kMaxUnsent = 512 << 10;

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
    const bool more = source->next(page);
    if (!exchange.responded()) {
      head.body = std::move(page);
      if (!more) co_return std::move(head);
      exchange.start(std::move(head));
    } else {
      exchange.write(std::move(page));
    }
    if (!more) {
      exchange.end();
      co_return std::nullopt;
    }
    check_connected(exchange);
    while (exchange.unsent() > kMaxUnsent) {
      exchange.on_drained(waiter.callback());
      co_await waiter.wait();
    }
  }
}

}  // namespace divan::api
