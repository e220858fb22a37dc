// Reads a message's body from the bytes that follow its head.
//
// Beast's parser is not used for bodies. Its result for a malformed chunk depends on how the bytes are split
// into reads (after an unclosed quote in a chunk extension it searches for the closing quote in the chunk's
// data), and "0\r\n" followed by one byte fails an assertion in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "divan/http/serializer.h"

namespace divan::http {

/// A body that is malformed (400 "bad_request") or too large (413 "too_large").
class BodyError final : public Error {
 public:
  using Error::Error;
};

/// Reads one body. Not thread-safe.
class BodyReader {
 public:
  BodyReader() = default;
  /// `length` is used with Framing::length only. `max_bytes` limits the body; `max_line_bytes` limits each
  /// chunk header and the trailer. Throws BodyError if `length` exceeds `max_bytes`.
  BodyReader(Framing framing, std::uint64_t length, std::uint64_t max_bytes, std::size_t max_line_bytes);

  /// Consumes bytes from the front and passes those of the body to `sink(std::string_view)`. Returns how many
  /// were consumed: never more than up to the body's end, and none after `limit` bytes of the body. Pass the
  /// rest again in the next call, with further bytes appended. Throws BodyError.
  template <class Sink>
  std::size_t feed(std::string_view bytes, std::size_t limit, Sink&& sink) {
    std::size_t used = 0;
    while (!done() && used < bytes.size() && limit > 0) {
      const auto rest = bytes.substr(used);
      if (part_ != Part::data) {
        const auto size = feed_line(rest);
        if (size == 0) break;
        used += size;
        continue;
      }
      const auto data = rest.substr(0, std::min<std::uint64_t>(left_, limit));
      sink(data);
      use_data(data.size());
      limit -= data.size();
      used += data.size();
    }
    return used;
  }

  bool done() const { return part_ == Part::done; }
  /// Returns true if the end of the connection ends the body.
  bool ends_with_connection() const { return framing_ == Framing::until_close; }

 private:
  enum class Part { data, chunk_size, chunk_end, trailer, done };

  std::size_t feed_line(std::string_view bytes);
  void read_chunk_size(std::string_view line);
  void use_data(std::uint64_t size);

  Framing framing_ = Framing::none;
  Part part_ = Part::done;
  std::uint64_t left_ = 0;     // of the body or of the chunk
  std::uint64_t allowed_ = 0;  // bytes of the body that are still allowed
  std::size_t max_line_bytes_ = 0;
  std::size_t scanned_ = 0;  // bytes at the front that are known to have no line end
  std::size_t trailer_bytes_ = 0;
};

}  // namespace divan::http
