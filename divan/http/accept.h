// What a client accepts (RFC 9110, section 12.5). The functions take the value of the header field
// (Request::list_header()), "" if it is absent.
#pragma once

#include <string_view>

namespace divan::http {

/// Returns true if this Accept-Encoding allows gzip, by name or as `*`. If the field is absent, it does not.
bool accepts_gzip(std::string_view accepted);

/// Returns true if this Accept allows the media type `type`, such as "text/html". The most specific range
/// that matches decides. If the field is absent, every type is acceptable.
bool accepts_media_type(std::string_view accepted, std::string_view type);

}  // namespace divan::http
