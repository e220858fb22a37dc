// How far indexes are behind, for /_ken and the metrics.
#pragma once

#include <map>

#include "divan/base/metrics.h"
#include "divan/ken/ken.h"

namespace divan::ken {

/// The most changes that are counted for an index that was built before.
inline constexpr std::int64_t kMaxCounted = 10'000;

/// Returns how many changed documents are not in the index: at most kMaxCounted, unless the index was never
/// built. Returns 0 if the database does not exist.
std::int64_t changes_behind(kv::Transaction& tx, docs::Catalog& catalog, std::string_view database,
                            std::string_view signature);
inline std::int64_t changes_behind(kv::Transaction& tx, docs::Catalog& catalog, const IndexName& index) {
  return changes_behind(tx, catalog, index.database, index.signature);
}

/// Registers metrics of what ken does and how far its indexes are behind. The arguments must outlive the
/// metrics.
void measure(Metrics& metrics, const Ken& ken, kv::Database& store, docs::Catalog& catalog);

}  // namespace divan::ken
