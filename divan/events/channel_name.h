// Names of channels. A name is bytes; where a tuple is meant, such as ("db", "orders"), it is written as a
// JSON Pointer (RFC 6901): "/db/orders". Names are documented with what is published on them, and never
// discovered.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace divan::events {

/// The name that stands for a tuple of byte strings: each part after a slash, with "~" written as "~0" and
/// "/" as "~1". Two tuples have the same name only if they are equal.
std::string channel_name(std::initializer_list<std::string_view> parts);

}  // namespace divan::events
