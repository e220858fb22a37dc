// Numbers of JSON text, read the way CouchDB's JSON parser reads them: what is written without a point and an
// exponent is an integer of any size, everything else is a double.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace divan::index::views {

__extension__ typedef __int128 Int128;

/// The value of an integer token (digits with an optional minus); nothing if `token` has a point or an
/// exponent or does not fit 128 bits.
std::optional<Int128> integer_value(std::string_view token);

/// The double nearest to a number token; an infinity beyond the range of doubles, a zero below it. `token`
/// must be a number as JSON writes it; anything else is 0.
double double_value(std::string_view token);

/// The nearest double.
double to_double(Int128 value);

/// In decimal digits.
std::string to_string(Int128 value);

}  // namespace divan::index::views
