// Entity tags in conditional requests (RFC 9110, sections 8.8.3 and 13.1).
#pragma once

#include <string>
#include <string_view>

namespace divan::http {

/// A strong entity tag of `bytes` (a digest), including its quotes.
std::string etag_of(std::string_view bytes);

/// Returns true if the If-None-Match value `field` contains `etag` (with its quotes, perhaps weak: W/"..."),
/// so that the response to a GET is 304. Uses the weak comparison, as RFC 9110 requires for this field; "*"
/// matches every tag. A malformed value matches no tag.
bool if_none_match(std::string_view field, std::string_view etag);

}  // namespace divan::http
