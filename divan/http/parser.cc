#include "divan/http/parser.h"

#include <fmt/format.h>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "divan/base/bytes.h"

namespace divan::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::field;

// A chunked body always has at least "0\r\n\r\n" before it, and Beast asserts as much when it looks a second
// time at the last chunk.
constexpr std::size_t kLeastBeforeChunkedEnd = 5;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

Error uri_too_long() { return {414, "uri_too_long", "The request's URL is too long."}; }
Error headers_too_large() { return {431, "headers_too_large", "The request's headers are too large."}; }

// Feeds `parser` until it needs more, answers how many bytes it took.
template <bool kRequest>
std::size_t put_all(beast::http::basic_parser<kRequest>& parser, std::string_view bytes, error_code& ec) {
  std::size_t used = 0;
  while (!parser.is_done()) {
    const auto rest = bytes.substr(used);
    const bool chunked = parser.is_header_done() && parser.chunked();
    if (rest.empty() || (chunked && rest.size() < kLeastBeforeChunkedEnd)) break;
    used += parser.put(boost::asio::const_buffer(rest.data(), rest.size()), ec);
    if (ec == beast::http::error::need_more) {
      ec = {};
      break;
    }
    if (ec) break;
  }
  return used;
}

// Beast's parser, filling a Request and refusing what the server does not take.
class RequestSink final : public beast::http::basic_parser<true> {
 public:
  explicit RequestSink(const ParserLimits& limits) : limits_(limits) {
    header_limit(limits.max_header_bytes);
    body_limit(limits.max_body_bytes);
  }

  std::optional<Request> request;
  bool expects_continue = false;

 protected:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code&) override {
    if (target.size() > limits_.max_target_bytes) throw uri_too_long();
    request.emplace(view(method), view(target), version - 10);
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  void on_field_impl(field name, beast::string_view name_text, beast::string_view value,
                     error_code&) override {
    // Trailers come here too. They are read over: a field that was not there when the body began must not
    // change what the request means.
    if (head_done_) return;
    check_field(name, view(value));
    request->add_header(view(name_text), view(value));
  }

  void on_header_impl(error_code&) override {
    head_done_ = true;
    if (request->minor_version() >= 1 && hosts_ != 1) {
      throw bad_request("An HTTP/1.1 request needs one Host header.");  // RFC 9112, section 3.2
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    // What a client merely announces costs little.
    if (length) request->reserve_body(std::min<std::uint64_t>(*length, 64 << 10));
  }
  std::size_t on_body_impl(beast::string_view body, error_code&) override {
    request->append_body(view(body));
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, error_code&) override {
    request->append_body(view(body));
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

 private:
  void check_field(field name, std::string_view value) {
    switch (name) {
      case field::host: ++hosts_; return;
      case field::content_length:
        if (++lengths_ > 1 || value.find_first_not_of("0123456789") != std::string_view::npos) {
          throw bad_request("The Content-Length header is malformed or repeated.");
        }
        return;
      case field::transfer_encoding:
        if (request->minor_version() == 0) {
          throw bad_request("HTTP/1.0 knows no Transfer-Encoding header.");
        }
        if (!equal_ignoring_case(value, "chunked")) {
          throw Error(501, "not_implemented", "The only Transfer-Encoding that is understood is chunked.");
        }
        return;
      case field::content_encoding:
        if (equal_ignoring_case(value, "identity")) return;
        throw Error(415, "bad_content_type",
                    fmt::format("{} is not a supported content encoding.", is_utf8(value) ? value : "This"));
      case field::expect:
        if (!equal_ignoring_case(value, "100-continue")) {
          throw Error(417, "expectation_failed", "The only expectation that can be met is 100-continue.");
        }
        expects_continue = request->minor_version() >= 1;
        return;
      default: return;
    }
  }

  const ParserLimits& limits_;
  int hosts_ = 0;
  int lengths_ = 0;
  bool head_done_ = false;
};

}  // namespace

struct RequestParser::Impl {
  explicit Impl(const ParserLimits& limits_in) : limits(limits_in) { reset(); }

  void reset() {
    sink.emplace(limits);
    begun = false;
    scanned = 0;
    lines = 0;
  }

  bool head_is_whole(std::string_view bytes);

  [[noreturn]] static void fail(const error_code& ec) {
    if (ec == beast::http::error::body_limit) {
      throw Error(413, "too_large", "the request entity is too large");
    }
    throw bad_request(fmt::format("The request is malformed: {}.", ec.message()));
  }

  const ParserLimits limits;
  std::optional<RequestSink> sink;
  // Of the head, while it comes.
  bool begun = false;
  std::size_t scanned = 0;  // the beginning of the first line that is not complete
  std::size_t lines = 0;
};

// Whether `bytes`, which begin with the request, have all of its head. Beast looks at a head that comes in
// pieces only when its last line is there; so that nonsense is refused at once and the limits do not depend
// on the pieces, lines are looked at here as they come.
bool RequestParser::Impl::head_is_whole(std::string_view bytes) {
  if (bytes.front() <= ' ' || bytes.front() == '\x7f') throw bad_request("This is not an HTTP request.");
  for (;;) {
    const auto end = bytes.find('\n', scanned);
    const bool complete = end != std::string_view::npos;
    const auto size = complete ? end + 1 : bytes.size();
    if (complete ? size > limits.max_header_bytes : size >= limits.max_header_bytes) {
      throw lines == 0 ? uri_too_long() : headers_too_large();
    }
    if (!complete) return false;
    const auto line = bytes.substr(scanned, size - scanned);
    if (!line.ends_with("\r\n")) throw bad_request("The request has a line that does not end with CR LF.");
    if (lines == 0 && !line.ends_with(" HTTP/1.1\r\n") && !line.ends_with(" HTTP/1.0\r\n")) {
      throw bad_request("The request line does not end with HTTP/1.1 or HTTP/1.0.");
    }
    ++lines;
    scanned = size;
    if (line.size() == 2) return true;
  }
}

RequestParser::RequestParser(const ParserLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  auto& [limits, sink, begun, scanned, lines] = *impl_;
  std::size_t skipped = 0;
  if (!begun) {
    // Some clients send an empty line after a body (RFC 9112, section 2.2).
    skipped = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
    bytes.remove_prefix(skipped);
    begun = !bytes.empty();
  }
  if (!begun || (!sink->is_header_done() && !impl_->head_is_whole(bytes))) return skipped;
  error_code ec;
  const auto used = put_all(*sink, bytes, ec);
  if (ec) Impl::fail(ec);
  if (!sink->is_header_done()) throw bad_request("The request's head is malformed.");
  if (!sink->is_done() && bytes.size() - used >= limits.max_header_bytes) {
    throw bad_request("A chunk's header or the trailer is too large.");
  }
  return skipped + used;
}

RequestParser::Stage RequestParser::stage() const {
  const auto& sink = *impl_->sink;
  if (!impl_->begun) return Stage::idle;
  if (!sink.is_header_done()) return Stage::head;
  return sink.is_done() ? Stage::done : Stage::body;
}

bool RequestParser::wants_continue() const {
  return stage() == Stage::body && impl_->sink->expects_continue && impl_->sink->request->body().empty();
}

bool RequestParser::keep_alive() const { return impl_->sink->keep_alive(); }

Request RequestParser::take() {
  Request request = std::move(*impl_->sink->request);
  impl_->reset();
  return request;
}

namespace {

class ResponseSink final : public beast::http::basic_parser<false> {
 public:
  ResponseSink(const ParserLimits& limits, bool head_only, ResponseParser::BodySink& body_sink)
      : body_sink_(body_sink) {
    header_limit(limits.max_header_bytes);
    body_limit(limits.max_body_bytes);
    skip(head_only);
  }

  int code = 0;
  Headers headers{};

 protected:
  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int, error_code&) override {
  }
  void on_response_impl(int status, beast::string_view, int, error_code&) override { code = status; }
  void on_field_impl(field, beast::string_view name, beast::string_view value, error_code&) override {
    if (!head_done_) headers.push_back({std::string(view(name)), std::string(view(value))});
  }
  void on_header_impl(error_code&) override { head_done_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, error_code&) override {
    body_sink_(view(body));
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, error_code&) override {
    body_sink_(view(body));
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

 private:
  ResponseParser::BodySink& body_sink_;
  bool head_done_ = false;
};

[[noreturn]] void fail_response(std::string_view why) {
  throw Error(502, "bad_response", fmt::format("The server's response is malformed: {}.", why));
}

}  // namespace

struct ResponseParser::Impl {
  Impl(const ParserLimits& limits_in, bool head_only_in, BodySink sink_in)
      : limits(limits_in), head_only(head_only_in), body_sink(std::move(sink_in)) {
    reset();
  }
  void reset() { sink.emplace(limits, head_only, body_sink); }

  const ParserLimits limits;
  const bool head_only;
  BodySink body_sink;
  std::optional<ResponseSink> sink;
};

ResponseParser::ResponseParser(const ParserLimits& limits, bool head_only, BodySink sink)
    : impl_(std::make_unique<Impl>(limits, head_only, std::move(sink))) {}
ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::feed(std::string_view bytes) {
  std::size_t used = 0;
  error_code ec;
  for (;;) {
    used += put_all(*impl_->sink, bytes.substr(used), ec);
    if (ec) fail_response(ec.message());
    const bool interim = done() && status() / 100 == 1 && status() != 101;
    if (!interim) break;
    impl_->reset();
  }
  if (!done() && bytes.size() - used >= impl_->limits.max_header_bytes) {
    fail_response("a chunk's header or the trailer is too large");
  }
  return used;
}

void ResponseParser::feed_end() {
  error_code ec;
  if (!impl_->sink->got_some()) fail_response("it is empty");
  impl_->sink->put_eof(ec);
  if (ec) fail_response(ec.message());
}

bool ResponseParser::head_done() const { return impl_->sink->is_header_done(); }
bool ResponseParser::done() const { return impl_->sink->is_done(); }
bool ResponseParser::keep_alive() const { return impl_->sink->keep_alive(); }
int ResponseParser::status() const { return impl_->sink->code; }
const Headers& ResponseParser::headers() const { return impl_->sink->headers; }

}  // namespace divan::http
