// Numbers of JSON text, read as CouchDB's JSON parser reads them: a number without a decimal point and an
// exponent is an integer of any size, any other number is a double.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace divan::collation {

__extension__ using Int128 = __int128;

/// The value of an integer token (digits with an optional minus); nullopt if `token` has a decimal point or
/// an exponent or does not fit in 128 bits.
std::optional<Int128> integer_value(std::string_view token);

/// The double nearest to a number token; infinity above the range of doubles, zero below it. `token` must be
/// a JSON number; anything else is 0.
double double_value(std::string_view token);

/// The nearest double.
double to_double(Int128 value);

/// In decimal digits.
std::string to_string(Int128 value);

}  // namespace divan::collation
