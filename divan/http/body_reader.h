// A message's body, out of the bytes that follow its head.
//
// Written by us and not left to Beast: what its parser makes of a malformed chunk depends on the pieces in
// which the bytes come (a quote that is not closed in a chunk's extension makes it look for the other one in
// the chunk's data), and with "0\r\n" and one byte more it runs into an assertion.
#pragma once

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
  /// `length` counts for Framing::length. A body may have `max_bytes`, a chunk's header and the trailer
  /// `max_line_bytes` each. Throws BodyError.
  BodyReader(Framing framing, std::uint64_t length, std::uint64_t max_bytes, std::size_t max_line_bytes);

  /// Uses bytes off the front and gives those that belong to the body to `sink(std::string_view)`; answers
  /// how many were used, never beyond the body's end. The next call gets the rest with more behind it. Throws
  /// BodyError.
  template <class Sink>
  std::size_t feed(std::string_view bytes, Sink&& sink) {
    std::size_t used = 0;
    while (!done() && used < bytes.size()) {
      const auto rest = bytes.substr(used);
      if (part_ != Part::data) {
        const auto size = feed_line(rest);
        if (size == 0) break;
        used += size;
        continue;
      }
      const auto data = rest.substr(0, left_);
      sink(data);
      use_data(data.size());
      used += data.size();
    }
    return used;
  }

  bool done() const { return part_ == Part::done; }
  /// Whether the connection may end here.
  bool ends_with_connection() const { return framing_ == Framing::until_close; }

 private:
  enum class Part { data, chunk_size, chunk_end, trailer, done };

  std::size_t feed_line(std::string_view bytes);
  void read_chunk_size(std::string_view line);
  void use_data(std::uint64_t size);

  Framing framing_ = Framing::none;
  Part part_ = Part::done;
  std::uint64_t left_ = 0;     // of the body or of the chunk
  std::uint64_t allowed_ = 0;  // bytes of the body that may still come
  std::size_t max_line_bytes_ = 0;
  std::size_t scanned_ = 0;  // bytes at the front that are known to have no line end
  std::size_t trailer_bytes_ = 0;
};

}  // namespace divan::http
