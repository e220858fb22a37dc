// Indexes that no design document defines any more.
#pragma once

#include "divan/index/index.h"

namespace divan::index {

/// Removes the rows of indexes that no design document defines any more, except serving indexes
/// (serving_index.h). Returns the number of removed indexes.
std::size_t remove_unused(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds);

}  // namespace divan::index
