// Names of channels. A name is bytes; where a tuple is meant, such as ("orders", "paid"), it is written as a
// JSON Pointer (RFC 6901): "/orders/paid". Names are documented with what is published on them, and never
// discovered. Tuples whose first part begins with an underscore are Divan's own.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace divan::events {

/// The name that stands for a tuple of byte strings: each part after a slash, with "~" written as "~0" and
/// "/" as "~1". Two tuples have the same name only if they are equal.
std::string channel_name(std::span<const std::string> parts);
std::string channel_name(std::initializer_list<std::string_view> parts);

/// The tuple that a name of channel_name() stands for.
std::vector<std::string> channel_parts(std::string_view name);

/// Whether a name of channel_name() is one of Divan's own.
inline bool is_own_channel(std::string_view name) { return name.starts_with("/_"); }

}  // namespace divan::events
