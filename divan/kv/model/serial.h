// Transactions one at a time, on a map: the results of a serial history. It shares only the arithmetic of
// atomic operations with the engines, so it also finds faults that all engines have in common.
#pragma once

#include <map>

#include "divan/kv/model/program.h"

namespace divan::kv::model {

using Rows = std::map<std::string, std::string>;

/// Performs the operation on `rows`; writes take effect immediately. Returns what perform() does. Not for
/// stamped keys and values.
std::string perform(Rows& rows, const Operation& operation);

/// Like contents() of a database.
std::string contents(const Rows& rows);

}  // namespace divan::kv::model
