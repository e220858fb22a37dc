// Update sequences as clients see them: opaque strings, "57-000000000000003900000001". Before the dash stands
// the version of the commit, which only grows; behind it, in hexadecimal, the versionstamp.
#pragma once

#include <string>
#include <string_view>

#include "divan/kv/tuple_versionstamp.h"

namespace divan::docs {

std::string to_sequence(const kv::Versionstamp& stamp);

/// Reads what to_sequence() wrote, "0" (before everything), or a bare version N (before everything later than
/// version N). Throws bad_request "Malformed sequence supplied in 'since' parameter."
kv::Versionstamp parse_sequence(std::string_view text);

}  // namespace divan::docs
