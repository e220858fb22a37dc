// Indexes that are no longer defined by a design document.
#pragma once

#include "divan/index/index.h"

namespace divan::index {

/// Removes the rows of indexes that are no longer defined by a design document, except serving indexes
/// (serving_index.h). Returns the number of removed indexes.
std::size_t remove_unused(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds);

}  // namespace divan::index
