// Bodies with "Content-Encoding: gzip" (RFC 1952).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace divan::http {

/// Uncompresses a body piece by piece. Not thread-safe.
class Gunzip {
 public:
  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Adds the next compressed bytes. They must exist until next() has returned an empty piece.
  void feed(std::string_view compressed);
  /// Returns the next uncompressed bytes, at most 64 KiB, which are valid until the next call; empty if it
  /// needs more input. Throws bad_request (400) if the body is malformed.
  std::string_view next();
  /// Throws bad_request unless the body is complete.
  void check_complete() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the uncompressed bytes. A body may consist of several gzip members. Throws bad_request (400) if it
/// is malformed or truncated, and too_large (413) as soon as the output exceeds `max_bytes`, since a small
/// body may expand to gigabytes.
std::string gunzip(std::string_view compressed, std::size_t max_bytes);

}  // namespace divan::http
