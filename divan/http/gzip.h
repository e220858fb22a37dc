// Bodies with "Content-Encoding: gzip" (RFC 1952).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace divan::http {

/// The uncompressed bytes. A body may have several gzip members, one after the other. Throws bad_request
/// (400) if it is malformed or cut short, and too_large (413) as soon as there are more than `max_bytes`: a
/// small body may stand for gigabytes.
std::string gunzip(std::string_view compressed, std::size_t max_bytes);

}  // namespace divan::http
