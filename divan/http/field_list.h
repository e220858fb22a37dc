// Lists in header fields and settings.
#pragma once

#include <string_view>
#include <vector>

namespace divan::http {

/// The text without the spaces and tabs around it (RFC 9110, section 5.6.3).
std::string_view trim(std::string_view text);

/// The elements of a list with commas between them, trimmed, without empty ones (RFC 9110, section 5.6.1).
/// They are valid as long as `list`.
std::vector<std::string_view> split_list(std::string_view list);

}  // namespace divan::http
