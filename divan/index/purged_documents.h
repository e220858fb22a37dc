// Rows of documents of which a purge has left nothing (docs/purge.h), as long as indexes need them.
#pragma once

#include "divan/index/index.h"

namespace divan::index {

/// Removes those rows that all indexes have processed, except the last one, which keeps the database's
/// sequence from decreasing. An index counts from the beginning of its first build until its rows are
/// removed, so that one whose builds fail keeps rows. Returns true if one more call may remove more.
bool remove_purged_documents(kv::Transaction& tx, const docs::Database& database);

}  // namespace divan::index
