// How far indexes are behind, for those who look: /_ken and the metrics.
#pragma once

#include <map>

#include "divan/base/metrics.h"
#include "divan/ken/ken.h"

namespace divan::ken {

/// The documents that changed and are not in the index; not counted beyond 10,000, but for an index that was
/// never built. 0 if the database is gone.
std::int64_t changes_behind(kv::Transaction& tx, docs::Catalog& catalog, const IndexName& index);

/// Shows what a ken does and how far its indexes are behind as metrics. All that it is given must outlive the
/// metrics.
void measure(Metrics& metrics, const Ken& ken, kv::Database& store, docs::Catalog& catalog);

}  // namespace divan::ken
