// Serializes a response's head into one buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "divan/http/message.h"

namespace divan::http {

/// How a receiver knows where a body ends (RFC 9112, section 6.3).
enum class Framing {
  none,         ///< no body and no field that describes one (204, 304)
  length,       ///< Content-Length
  chunked,      ///< Transfer-Encoding: chunked
  until_close,  ///< the body ends with the connection
};

/// The parts of a response's head that the server sets; the handler sets the others.
struct HeadFraming {
  Framing framing = Framing::length;
  std::uint64_t length = 0;       ///< for Framing::length
  std::string_view connection{};  ///< the Connection field's value; empty: no such field
  std::string_view own_fields{};  ///< complete lines that every response has: Date and Server
};

/// Appends status line, fields and the empty line. CR, LF and NUL are written as spaces, so that a value that
/// comes from a client cannot inject fields.
void append_head(std::string& out, const Response& response, const HeadFraming& framing);

/// Appends a chunk's header: "<size in hexadecimal>\r\n".
void append_chunk_size(std::string& out, std::uint64_t size);

/// A date in HTTP's form: "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7).
std::string http_date(std::int64_t unix_seconds);

/// The value of the Content-Length field that the handler set; nullopt if it is missing or malformed.
std::optional<std::uint64_t> own_content_length(const Response& response);

}  // namespace divan::http
