// Merges the rows of small segments of a full-text index into larger ones.
#pragma once

#include <memory>

#include "divan/index/search/rows.h"

namespace divan::index::search {

/// A level is merged when it has this many segments.
inline constexpr std::int64_t kMergedSegments = 10;

/// The next piece of a merge, which is begun if it is due; null if there is nothing to merge. Entries of
/// documents that are no longer live are left out. Rows may change between pieces.
std::unique_ptr<IndexWork> merge_piece(kv::Database& store, const IndexKeys& keys);

bool is_merge_due(const IndexState& state);

}  // namespace divan::index::search
