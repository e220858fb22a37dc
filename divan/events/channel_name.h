// Names of channels. A name is a byte string. A tuple such as ("orders", "paid") is written as a JSON Pointer
// (RFC 6901): "/orders/paid". Names are documented together with their events; there is no discovery. Tuples
// whose first part begins with an underscore are reserved for Divan.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace divan::events {

/// The name of a tuple of byte strings: each part follows a slash, with "~" written as "~0" and "/" as "~1".
/// Different tuples have different names.
std::string channel_name(std::span<const std::string> parts);
std::string channel_name(std::initializer_list<std::string_view> parts);

/// The tuple of a name that channel_name() returned.
std::vector<std::string> channel_parts(std::string_view name);

/// Returns true if the tuple of the name is reserved for Divan.
inline bool is_own_channel(std::string_view name) { return name.starts_with("/_"); }

}  // namespace divan::events
