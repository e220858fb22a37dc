// Whether the list of the design documents that validate (validation.h) is complete.
#pragma once

#include <string>

#include "divan/kv/check.h"

namespace divan::docs {

/// Reads the design documents of a database, and adds a finding unless its list names exactly those that
/// validate its documents.
void check_validators(kv::RowSource& rows, kv::Findings& findings, const std::string& database,
                      std::int64_t number);

}  // namespace divan::docs
