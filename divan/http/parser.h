// From bytes to messages: Boost.Beast's parser behind our own types, with the rules that it leaves to its
// user.
//
// Both sides of a connection must agree where a message ends, or a second request can be smuggled in the
// first one's body. So what RFC 9112 allows to be read in two ways is refused: a repeated Content-Length,
// Content-Length beside Transfer-Encoding, any Transfer-Encoding but "chunked".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "divan/http/message.h"

namespace divan::http {

struct ParserLimits {
  std::uint32_t max_header_bytes = 64 << 10;  ///< start line and fields together; also a chunk's header
  std::size_t max_target_bytes = 16 << 10;
  std::uint64_t max_body_bytes = 64 << 20;
};

/// Reads one request after the other from a stream of bytes. Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  enum class Stage {
    idle,  ///< nothing of the request has come
    head,
    body,
    done,  ///< take() it
  };

  /// Takes bytes off the front of `bytes` and answers how many; never beyond the end of the request. The next
  /// call gets the bytes that were left, with more behind them. Throws Error (400, 413, 414, 415, 417, 431,
  /// 501) for what cannot be understood or is too large; the connection is of no use afterwards.
  std::size_t feed(std::string_view bytes);

  Stage stage() const;

  /// Whether the client waits for "100 Continue" before it sends the body.
  bool wants_continue() const;

  /// Whether the client allows another request on the connection. At stage body and later.
  bool keep_alive() const;

  /// Gives out the request and begins with the next one. At stage done.
  Request take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads one response. Not thread-safe.
class ResponseParser {
 public:
  using BodySink = std::function<void(std::string_view)>;

  /// `head_only`: the request was HEAD, so that no body follows. `sink` gets the body as it comes.
  ResponseParser(const ParserLimits& limits, bool head_only, BodySink sink);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// As RequestParser::feed, but every error is a 502 "bad_response". Interim (1xx) responses are skipped.
  std::size_t feed(std::string_view bytes);

  /// The connection has ended; the response may end with it. Throws 502 if it is cut short.
  void feed_end();

  /// What the sink gets is this response's body from here on.
  bool head_done() const;
  bool done() const;
  /// Whether the connection serves another request. When done.
  bool keep_alive() const;

  /// Valid when head_done().
  int status() const;
  const Headers& headers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace divan::http
