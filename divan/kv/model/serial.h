// Transactions one at a time, on a map: what a serial history comes to. As small as it can be, and nothing of
// it shared with an engine but the arithmetic of atomic operations: what the engines do wrong alike, the
// reference included, is still seen.
#pragma once

#include <map>

#include "divan/kv/model/program.h"

namespace divan::kv::model {

using Rows = std::map<std::string, std::string>;

/// Does the operation as if nobody else were there, which writes to `rows` at once; answers like perform().
/// Not for stamped keys and values.
std::string perform(Rows& rows, const Operation& operation);

/// Like contents() of a database.
std::string contents(const Rows& rows);

}  // namespace divan::kv::model
