// How far indexes are behind, for those who look: /_ken and the metrics.
#pragma once

#include <map>

#include "divan/base/metrics.h"
#include "divan/ken/ken.h"

namespace divan::ken {

/// Changes that are counted, of an index that was built before.
inline constexpr std::int64_t kMaxCounted = 10'000;

/// The documents that changed and are not in the index; not counted beyond kMaxCounted, except for an index
/// that was never built. 0 if the database is gone.
std::int64_t changes_behind(kv::Transaction& tx, docs::Catalog& catalog, std::string_view database,
                            std::string_view signature);
inline std::int64_t changes_behind(kv::Transaction& tx, docs::Catalog& catalog, const IndexName& index) {
  return changes_behind(tx, catalog, index.database, index.signature);
}

/// Shows what a ken does and how far its indexes are behind as metrics. All that it is given must outlive the
/// metrics.
void measure(Metrics& metrics, const Ken& ken, kv::Database& store, docs::Catalog& catalog);

}  // namespace divan::ken
