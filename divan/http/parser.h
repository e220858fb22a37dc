// Parses messages: Boost.Beast's parser behind our own types, with the checks that it leaves to its user.
//
// Both sides of a connection must agree where a message ends, or a second request can be smuggled in the
// first one's body. So framing that RFC 9112 leaves ambiguous is rejected: a repeated Content-Length,
// Content-Length together with Transfer-Encoding, and any Transfer-Encoding except "chunked".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "divan/http/message.h"

namespace divan::http {

/// Given the head of a request with a body, returns the maximum size of its body if the body is to be
/// streamed, otherwise nullopt.
using StreamedBody = std::function<std::optional<std::uint64_t>(const Request& head)>;

struct ParserLimits {
  std::uint32_t max_header_bytes = 64 << 10;  ///< start line and fields together; also a chunk's header
  std::size_t max_target_bytes = 16 << 10;
  std::uint64_t max_body_bytes = 64 << 20;
  StreamedBody streamed_body{};  ///< empty: no body is streamed
};

/// Parses consecutive requests from a stream of bytes. Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  enum class Stage {
    idle,  ///< no byte of the request has arrived
    head,
    body,
    done,  ///< the body is complete
  };

  /// Consumes bytes from the front of `bytes` and returns how many, never more than up to the end of the
  /// request. Pass the rest again in the next call, with further bytes appended. Throws Error (400, 413, 414,
  /// 415, 417, 431, 501) if the request is invalid, too large or unsupported; the connection must then be
  /// closed. Of a request whose body is streamed only the head is consumed before take() is called, and then
  /// not more than `max_streamed` bytes of the body.
  std::size_t feed(std::string_view bytes, std::size_t max_streamed = SIZE_MAX);

  Stage stage() const;

  /// Returns true if the request's body is streamed, until take_body() has returned its end: take() returns
  /// the head only. Valid from stage body on.
  bool is_streamed() const;

  /// Returns true if the client waits for "100 Continue" before it sends the body.
  bool wants_continue() const;

  /// Returns true if the client allows another request on the connection. Valid from stage body on.
  bool keep_alive() const;

  /// Returns the request. Call at stage done, or at stage body if the body is streamed; then take_body()
  /// returns the body. Otherwise starts with the next request.
  Request take();

  /// Returns the bytes of a streamed body that were fed since the last call. At stage done, starts with the
  /// next request.
  std::string take_body();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Parses one response. Not thread-safe.
class ResponseParser {
 public:
  using BodySink = std::function<void(std::string_view)>;

  /// `head_only`: the request was HEAD, so that no body follows. `sink` receives the body as it arrives.
  ResponseParser(const ParserLimits& limits, bool head_only, BodySink sink);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Like RequestParser::feed, but every error is a 502 "bad_response". Interim (1xx) responses are skipped.
  std::size_t feed(std::string_view bytes);

  /// Call when the connection has ended, which may complete the response. Throws 502 if the response is
  /// truncated.
  void feed_end();

  /// Returns true once the response's head is complete.
  bool head_done() const;
  bool done() const;
  /// Returns true if the connection can be used for another request. Valid when done().
  bool keep_alive() const;

  /// Valid when head_done().
  int status() const;
  const Headers& headers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace divan::http
