// HTTP messages (RFC 9110): a request as the server received it and a response as a handler made it. Plain
// values without sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/base/error.h"

namespace divan::http {

/// One header field. Names are case-insensitive.
struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

/// Compares ASCII letters case-insensitively and all other bytes exactly.
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// A complete request: start line, header fields and body. Not thread-safe; it may be moved from thread to
/// thread. Returned views are valid until it is moved or destroyed.
class Request {
 public:
  /// `minor_version` is 0 for HTTP/1.0 and 1 for HTTP/1.1.
  Request(std::string_view method, std::string_view target, int minor_version = 1);

  /// As sent: case matters, and methods beyond those of HTTP (COPY) are allowed.
  std::string_view method() const { return view(method_); }
  /// The request target as sent.
  std::string_view target() const { return view(target_); }
  /// The target's path as sent (percent-encoded), without scheme and authority; at least "/", or "*".
  std::string_view path() const { return view(path_); }
  /// What follows the target's first '?', as sent; empty without one.
  std::string_view query() const { return view(query_); }
  int minor_version() const { return minor_version_; }

  /// The value of the first field of this name, without the white space around it.
  std::optional<std::string_view> header(std::string_view name) const;

  /// The values of all fields of this name, joined by commas, for fields that are lists (RFC 9110,
  /// section 5.3); empty without one.
  std::string list_header(std::string_view name) const;

  /// All fields in their order.
  std::vector<std::pair<std::string_view, std::string_view>> headers() const;

  const std::string& body() const { return body_; }
  /// Moves the body out; body() is empty afterwards.
  std::string take_body() { return std::move(body_); }

  /// The client's numeric address, without its port.
  const std::string& peer() const { return peer_; }

  void add_header(std::string_view name, std::string_view value);
  void append_body(std::string_view bytes) { body_.append(bytes); }
  void set_body(std::string body) { body_ = std::move(body); }
  void reserve_body(std::size_t size) { body_.reserve(size); }
  void set_peer(const std::string& peer) { peer_ = peer; }

 private:
  // Start line and fields are stored one after the other in text_: two allocations per request instead of two
  // per field.
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  struct Field {
    Span name;
    Span value;
  };

  std::string_view view(Span span) const { return std::string_view(text_).substr(span.begin, span.size); }
  Span append(std::string_view bytes);
  void split_target();

  std::string text_;
  Span method_;
  Span target_;
  Span path_;
  Span query_;
  std::vector<Field> fields_;
  int minor_version_;
  std::string body_;
  std::string peer_;
};

/// A part of a request's body that is streamed.
struct StreamedBodyPart {
  std::string data{};
  bool is_last = false;
};

/// A response. The server itself sets Date, Server, Connection, Content-Length and Transfer-Encoding; fields
/// of the first three names and the last are ignored here. (For Content-Length see Exchange::start.)
struct Response {
  int status = 200;  ///< 200 to 599
  Headers headers{};
  std::string body{};
};

/// The error in CouchDB's form: {"error": ..., "reason": ...}.
Response error_response(const Error& error);

/// RFC 9110's reason phrase of a status; "Unknown" for a status that it does not list.
std::string_view reason_phrase(int status);

/// Logs the error if it is a failure of the server: a status of 500 or above, except 501 (not implemented).
void log_failure(const Request& request, const Error& error);

}  // namespace divan::http
