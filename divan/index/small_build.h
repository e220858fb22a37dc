// Builds of a few changes, without a job.
#pragma once

#include "divan/docs/catalog.h"
#include "divan/index/index.h"

namespace divan::index {

/// Maximum number of changes of a small build.
inline constexpr std::int64_t kMaxSmallBuild = 100;

/// Brings an index up to date in one transaction, on the calling thread. To be called outside of
/// transactions, for an index with Index::allows_small_builds(). The transaction commits only if no other
/// writer has written to the index meanwhile, so no job is needed as a lock, and the index's job may run at
/// the same time. It is not retried. Returns false if it has written nothing, for whatever reason: more than
/// kMaxSmallBuild changes are missing, the index was never built, its definition has changed, there was a
/// conflict or an error. The index's job then does the work, and reports an error that remains. Does not
/// throw.
bool try_small_build(kv::Database& store, docs::Catalog& catalog, const docs::Database& database,
                     const Index& index);

}  // namespace divan::index
