// Bodies with "Content-Encoding: gzip" (RFC 1952).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace divan::http {

/// Returns the uncompressed bytes. A body may consist of several gzip members. Throws bad_request (400) if it
/// is malformed or truncated, and too_large (413) as soon as the output exceeds `max_bytes`, since a small
/// body may expand to gigabytes.
std::string gunzip(std::string_view compressed, std::size_t max_bytes);

}  // namespace divan::http
