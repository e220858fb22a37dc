#include "divan/http/parser.h"

#include <fmt/format.h>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/http/body_reader.h"

namespace divan::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::field;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

Error uri_too_long() { return {414, "uri_too_long", "The request's URL is too long."}; }
Error headers_too_large() { return {431, "headers_too_large", "The request's headers are too large."}; }

// Scans a head's lines as they arrive, before Beast parses them. Beast parses a head that arrives in pieces
// only when its last line is complete, so garbage would be rejected only by a timeout, and the limits would
// depend on the pieces.
class HeadScanner {
 public:
  enum class State { partial, whole, too_large, malformed };

  /// `bytes` begin with the head. `first_line_is_good(line)` is called once.
  template <class Predicate>
  State scan(std::string_view bytes, std::size_t limit, Predicate first_line_is_good) {
    DIVAN_CHECK(scanned_ <= bytes.size(), "{} of {} bytes were scanned", scanned_, bytes.size());
    for (;;) {
      const auto end = bytes.find('\n', scanned_);
      const bool complete = end != std::string_view::npos;
      const auto size = complete ? end + 1 : bytes.size();
      // A full buffer of the limit's size cannot receive more.
      if (complete ? size > limit : size >= limit) return State::too_large;
      if (!complete) return State::partial;
      const auto line = bytes.substr(scanned_, size - scanned_);
      if (!line.ends_with("\r\n")) return State::malformed;
      if (!any_line_ && !first_line_is_good(line.substr(0, line.size() - 2))) return State::malformed;
      any_line_ = true;
      scanned_ = size;
      if (line.size() == 2) return State::whole;
    }
  }

  bool any_line() const { return any_line_; }

 private:
  std::size_t scanned_ = 0;  // the beginning of the first line that is not complete
  bool any_line_ = false;
};

// Beast's parser for one complete head.
template <bool kRequest>
class HeadSink : public beast::http::basic_parser<kRequest> {
 public:
  HeadSink() {
    this->header_limit(std::numeric_limits<std::uint32_t>::max());  // HeadScanner checks it
    this->skip(true);                                               // BodyReader reads bodies
  }

  /// Returns the head's size.
  std::size_t put_head(std::string_view bytes, error_code& ec) {
    const auto used = this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
    if (!ec && !this->is_done()) ec = beast::http::error::partial_message;
    return used;
  }

 protected:
  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int, error_code&) override {
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_finish_impl(error_code&) override {}
  // Not called, since bodies are skipped.
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, error_code&) override { return 0; }
};

// Fills a Request; throws for fields that the server does not support.
class RequestSink final : public HeadSink<true> {
 public:
  explicit RequestSink(const ParserLimits& limits) : limits_(limits) {}

  std::optional<Request> request;
  bool expects_continue = false;

 protected:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code&) override {
    if (target.size() > limits_.max_target_bytes) throw uri_too_long();
    request.emplace(view(method), view(target), version - 10);
  }

  void on_field_impl(field name, beast::string_view name_text, beast::string_view value,
                     error_code&) override {
    check_field(name, view(value));
    request->add_header(view(name_text), view(value));
  }

  void on_header_impl(error_code&) override {
    if (request->minor_version() >= 1 && hosts_ != 1) {
      throw bad_request("An HTTP/1.1 request needs one Host header.");  // RFC 9112, section 3.2
    }
  }

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
          throw bad_request("HTTP/1.0 does not allow the Transfer-Encoding header.");
        }
        if (!equal_ignoring_case(value, "chunked")) {
          throw Error(501, "not_implemented",
                      "Unsupported Transfer-Encoding; the only supported one is chunked.");
        }
        return;
      case field::content_encoding:
        if (equal_ignoring_case(value, "identity") || equal_ignoring_case(value, "gzip")) return;
        throw Error(415, "bad_content_type",
                    fmt::format("{} is not a supported content encoding.", is_utf8(value) ? value : "This"));
      case field::expect:
        if (!equal_ignoring_case(value, "100-continue")) {
          throw Error(417, "expectation_failed",
                      "Unsupported Expect header; the only supported value is 100-continue.");
        }
        expects_continue = request->minor_version() >= 1;
        return;
      default: return;
    }
  }

  const ParserLimits& limits_;
  int hosts_ = 0;
  int lengths_ = 0;
};

}  // namespace

struct RequestParser::Impl {
  explicit Impl(const ParserLimits& limits_in) : limits(limits_in) { reset(); }

  void reset() {
    sink.emplace(limits);
    scanner = {};
    stage = Stage::idle;
    is_streamed = is_taken = any_body = false;
  }

  bool head_is_whole(std::string_view bytes);
  std::size_t feed_head(std::string_view bytes);

  const ParserLimits limits;
  std::optional<RequestSink> sink;
  HeadScanner scanner;
  BodyReader body;
  Stage stage = Stage::idle;
  bool is_streamed = false;
  bool is_taken = false;  // take() was called, and the body follows
  bool any_body = false;
  std::string piece;  // of a streamed body
};

bool RequestParser::Impl::head_is_whole(std::string_view bytes) {
  if (bytes.front() <= ' ' || bytes.front() == '\x7f') throw bad_request("This is not an HTTP request.");
  const auto state = scanner.scan(bytes, limits.max_header_bytes, [](std::string_view line) {
    return line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0");
  });
  switch (state) {
    case HeadScanner::State::partial: return false;
    case HeadScanner::State::whole: return true;
    case HeadScanner::State::too_large: throw scanner.any_line() ? headers_too_large() : uri_too_long();
    case HeadScanner::State::malformed: break;
  }
  throw bad_request(scanner.any_line() ? "The request has a line that does not end with CR LF."
                                       : "The request line does not end with HTTP/1.1 or HTTP/1.0.");
}

std::size_t RequestParser::Impl::feed_head(std::string_view bytes) {
  error_code ec;
  const auto used = sink->put_head(bytes, ec);
  if (ec) throw bad_request(fmt::format("The request is malformed: {}.", ec.message()));
  DIVAN_CHECK(used <= bytes.size() && sink->request, "a head of {} bytes in an input of {}", used,
              bytes.size());
  const auto length = sink->content_length();
  const auto framing = sink->chunked() ? Framing::chunked : length ? Framing::length : Framing::none;
  const bool has_body = framing == Framing::chunked || length.value_or(0) > 0;
  const auto streamed =
      has_body && limits.streamed_body ? limits.streamed_body(*sink->request) : std::nullopt;
  body = BodyReader(framing, length.value_or(0), streamed.value_or(limits.max_body_bytes),
                    limits.max_header_bytes);
  stage = Stage::body;
  is_streamed = streamed && !body.done();
  if (is_streamed) return used;
  // Limits the memory that a client can reserve by merely announcing a length.
  if (length) sink->request->reserve_body(std::min<std::uint64_t>(*length, 64 << 10));
  return used;
}

RequestParser::RequestParser(const ParserLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes, std::size_t max_streamed) {
  auto& impl = *impl_;
  std::size_t used = 0;
  if (impl.stage == Stage::idle) {
    // Some clients send an empty line after a body (RFC 9112, section 2.2).
    used = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
    if (used == bytes.size()) return used;
    impl.stage = Stage::head;
  }
  if (impl.stage == Stage::head) {
    if (!impl.head_is_whole(bytes.substr(used))) return used;
    used += impl.feed_head(bytes.substr(used));
  }
  if (impl.is_streamed && !impl.is_taken) return used;
  const std::size_t limit = impl.is_streamed ? max_streamed : SIZE_MAX;
  used += impl.body.feed(bytes.substr(used), limit, [&](std::string_view part) {
    impl.any_body = true;
    if (impl.is_streamed) {
      impl.piece += part;
    } else {
      impl.sink->request->append_body(part);
    }
  });
  DIVAN_CHECK(used <= bytes.size(), "{} of {} bytes of input were consumed", used, bytes.size());
  if (impl.body.done()) impl.stage = Stage::done;
  return used;
}

RequestParser::Stage RequestParser::stage() const { return impl_->stage; }

bool RequestParser::wants_continue() const {
  return stage() == Stage::body && impl_->sink->expects_continue && !impl_->any_body;
}

bool RequestParser::is_streamed() const { return impl_->is_streamed; }

bool RequestParser::keep_alive() const { return impl_->sink->keep_alive(); }

Request RequestParser::take() {
  DIVAN_CHECK(stage() == Stage::done || (stage() == Stage::body && is_streamed()),
              "a request is taken before its end");
  Request request = std::move(*impl_->sink->request);
  if (is_streamed()) {
    impl_->is_taken = true;
  } else {
    impl_->reset();
  }
  return request;
}

std::string RequestParser::take_body() {
  DIVAN_CHECK(impl_->is_taken, "a body is taken before its request's head");
  auto piece = std::exchange(impl_->piece, {});
  if (stage() == Stage::done) impl_->reset();
  return piece;
}

namespace {

class ResponseSink final : public HeadSink<false> {
 public:
  int status = 0;
  Headers headers{};

 protected:
  void on_response_impl(int code, beast::string_view, int, error_code&) override { status = code; }
  void on_field_impl(field, beast::string_view name, beast::string_view value, error_code&) override {
    headers.push_back({std::string(view(name)), std::string(view(value))});
  }
};

Error bad_response(std::string_view why) {
  return {502, "bad_response", fmt::format("The server's response is malformed: {}", why)};
}

}  // namespace

struct ResponseParser::Impl {
  std::size_t feed_head(std::string_view bytes);
  Framing framing() const;
  bool interim() const { return sink->status / 100 == 1 && sink->status != 101; }

  ParserLimits limits;
  bool head_only = false;
  BodySink body_sink;
  std::optional<ResponseSink> sink{std::in_place};
  HeadScanner scanner{};
  BodyReader body{};
  bool head_done = false;
};

// Consumes a complete head, or 0 bytes.
std::size_t ResponseParser::Impl::feed_head(std::string_view bytes) {
  const auto state = scanner.scan(bytes, limits.max_header_bytes,
                                  [](std::string_view line) { return line.starts_with("HTTP/1."); });
  if (state == HeadScanner::State::partial) return 0;
  if (state == HeadScanner::State::too_large) throw bad_response("its headers are too large.");
  if (state == HeadScanner::State::malformed) throw bad_response("it is not HTTP/1.1.");
  error_code ec;
  const auto used = sink->put_head(bytes, ec);
  if (ec) throw bad_response(ec.message() + ".");
  if (interim()) {
    sink.emplace();
    scanner = {};
    return used;
  }
  DIVAN_CHECK(used <= bytes.size(), "a head of {} bytes in an input of {}", used, bytes.size());
  head_done = true;
  body = BodyReader(framing(), sink->content_length().value_or(0), limits.max_body_bytes,
                    limits.max_header_bytes);
  return used;
}

// RFC 9112, section 6.3.
Framing ResponseParser::Impl::framing() const {
  const int status = sink->status;
  if (head_only || status == 101 || status == 204 || status == 304) return Framing::none;
  if (sink->chunked()) return Framing::chunked;
  return sink->content_length() ? Framing::length : Framing::until_close;
}

ResponseParser::ResponseParser(const ParserLimits& limits, bool head_only, BodySink sink)
    : impl_(std::make_unique<Impl>(Impl{limits, head_only, std::move(sink)})) {}
ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::feed(std::string_view bytes) {
  auto& impl = *impl_;
  std::size_t used = 0;
  try {
    while (!impl.head_done) {
      const auto size = impl.feed_head(bytes.substr(used));
      if (size == 0) return used;
      used += size;
    }
    return used + impl.body.feed(bytes.substr(used), SIZE_MAX, impl.body_sink);
  } catch (const BodyError& error) { throw bad_response(error.reason()); }
}

void ResponseParser::feed_end() {
  if (!impl_->head_done || !impl_->body.ends_with_connection()) throw bad_response("it is truncated.");
}

bool ResponseParser::head_done() const { return impl_->head_done; }
bool ResponseParser::done() const { return impl_->head_done && impl_->body.done(); }
bool ResponseParser::keep_alive() const {
  return impl_->sink->keep_alive() && !impl_->body.ends_with_connection();
}
int ResponseParser::status() const { return impl_->sink->status; }
const Headers& ResponseParser::headers() const { return impl_->sink->headers; }

}  // namespace divan::http
