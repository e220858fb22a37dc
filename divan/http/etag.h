// Entity tags in conditional requests (RFC 9110, sections 8.8.3 and 13.1).
#pragma once

#include <string>
#include <string_view>

namespace divan::http {

/// A strong tag that is another one for other bytes, quotes included.
std::string etag_of(std::string_view bytes);

/// Whether If-None-Match's value names `etag` (with its quotes, perhaps weak: W/"..."), so that a GET is to
/// be answered with 304. Compares weakly, as RFC 9110 asks for this field; "*" matches every tag. What is
/// malformed matches nothing.
bool if_none_match(std::string_view field, std::string_view etag);

}  // namespace divan::http
