// What a client accepts (RFC 9110, section 12.5). Both functions take the value of the field, several fields
// joined by commas, or "" without one.
#pragma once

#include <string_view>

namespace divan::http {

/// Returns true if this Accept-Encoding names gzip, or any coding. Without the field, clients are taken not
/// to understand it.
bool accepts_gzip(std::string_view accepted);

/// Returns true if this Accept has the media type `type`, such as "text/html", or a range that it is in. What
/// is most specific decides. Without the field, any type is accepted.
bool accepts_media_type(std::string_view accepted, std::string_view type);

}  // namespace divan::http
