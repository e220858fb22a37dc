#include "divan/api/page_stream.h"

namespace divan::api {
namespace {

// Unsent bytes above which reading of pages pauses.
constexpr std::size_t kMaxUnsent = 512 << 10;

class ReadyStream final : public PageStream {
 public:
  ReadyStream(const Context& context, CallPtr call, std::unique_ptr<PageSource> source)
      : PageStream(context, std::move(call)), source_(std::move(source)) {}

 private:
  std::unique_ptr<PageSource> open() override { return std::move(source_); }
  std::unique_ptr<PageSource> source_;
};

}  // namespace

bool PageStream::step() {
  if (!source_) source_ = open();
  if (!source_) return exchange().responded();
  for (;;) {
    // The client has disconnected. (One that has only closed its side has not.)
    if (exchange().closed()) return true;
    if (exchange().unsent() > kMaxUnsent) {
      exchange().on_drained(waker());
      return false;
    }
    std::string page;
    const bool more = source_->next(page);
    if (!exchange().responded()) {
      http::Response head = json_response(200, std::move(page));
      if (!etag_.empty()) head.headers.push_back({"ETag", etag_});
      if (!more) {
        exchange().respond(std::move(head));
        return true;
      }
      exchange().start(std::move(head));
    } else {
      exchange().write(std::move(page));
    }
    if (!more) {
      exchange().end();
      return true;
    }
  }
}

void stream_pages(const Context& context, CallPtr call, std::unique_ptr<PageSource> source) {
  std::make_shared<ReadyStream>(context, std::move(call), std::move(source))->start();
}

}  // namespace divan::api
