// Update sequences as clients see them: opaque strings, "57-000000000000003900000001". The number before the
// dash is the version of the commit, which increases; the versionstamp follows in hexadecimal.
#pragma once

#include <string>
#include <string_view>

#include "divan/kv/tuple_versionstamp.h"

namespace divan::docs {

std::string to_sequence(const kv::Versionstamp& stamp);

/// Parses the result of to_sequence(), "0" (before everything), or a bare version N (after everything up to
/// version N). Throws bad_request "Malformed sequence supplied in 'since' parameter."
kv::Versionstamp parse_sequence(std::string_view text);

}  // namespace divan::docs
