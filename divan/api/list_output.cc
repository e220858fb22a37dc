#include "divan/api/list_output.h"

#include <fmt/core.h>

#include "divan/api/function_call.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"

namespace divan::api {
namespace {

constexpr std::size_t kMaxHeldBytes = 32 << 20;
// What a connection may have unsent, so that it does not run dry before more is added.
constexpr std::size_t kMaxUnsent = 512 << 10;
constexpr std::size_t kPieceBytes = 1 << 20;

class HeldPages final : public PageSource {
 public:
  explicit HeldPages(std::deque<std::string> pages) : pages_(std::move(pages)) {}

  bool next(std::string& out) override {
    if (pages_.empty()) return false;
    out += pages_.front();
    pages_.pop_front();
    return !pages_.empty();
  }

 private:
  std::deque<std::string> pages_;
};

}  // namespace

http::Response list_head(std::string_view output) {
  auto head = response_of(json::find(json::members_of(output), "start").value_or("{}"));
  head.body.clear();
  return head;
}

std::string list_body(std::string_view output) {
  return json::string_value(json::find(json::members_of(output), "body").value_or("")).value_or("");
}

void ListOutput::append(const std::string& output) {
  const bool begins = json::find(json::members_of(output), "start").has_value();
  if (begins && !call_.exchange()->responded()) head_ = list_head(output);
  std::string body = list_body(output);
  if (body.empty()) return;
  held_bytes_ += body.size();
  if (held_bytes_ > kMaxHeldBytes) {
    throw Error(500, "list_error",
                fmt::format("The client has not read {} bytes of the output of the list function; the "
                            "maximum is {}.",
                            held_bytes_, kMaxHeldBytes));
  }
  if (held_bytes_ > reserved_) {
    FunctionThreads::reserve_more(memory_, held_bytes_ - reserved_);
    reserved_ = held_bytes_;
  }
  // In pieces, of which a connection may have several unsent.
  for (std::size_t at = 0; at < body.size(); at += kPieceBytes) held_.push_back(body.substr(at, kPieceBytes));
}

void ListOutput::send() {
  http::Exchange& exchange = *call_.exchange();
  while (!held_.empty() && exchange.unsent() < kMaxUnsent) {
    if (!exchange.responded()) exchange.start(take_head());
    held_bytes_ -= held_.front().size();
    exchange.write(std::move(held_.front()));
    held_.pop_front();
  }
}

void ListOutput::add(const std::string& output) {
  append(output);
  send();
}

std::unique_ptr<PageSource> ListOutput::finish(const std::string& output) {
  append(output);
  return std::make_unique<HeldPages>(std::move(held_));
}

}  // namespace divan::api
