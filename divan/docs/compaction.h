// Compactions: they remove the replaced revisions whose bodies are still stored
// (https://docs.couchdb.org/en/stable/maintenance/compaction.html).
#pragma once

#include "divan/docs/catalog.h"
#include "divan/docs/reader.h"

namespace divan::docs {

/// The most changes that one transaction of a compaction searches.
inline constexpr std::size_t kMaxCompactedChanges = 1'000;

/// What one transaction of a compaction is to do.
struct CompactionLimits {
  std::size_t changes = kMaxCompactedChanges;  // at least 1
  std::optional<kv::Versionstamp> end{};       // later changes are left to the next compaction; nullopt: none
};

/// What it has done.
struct CompactionStep {
  std::size_t changes = 0;  // that were searched for documents with replaced revisions
  bool is_last = false;     // there were no further ones
};

/// Removes replaced revisions of the next documents. The sequence up to which changes have been searched is
/// stored in the database: a document without any there can only get one by a later change. So the next
/// compaction continues there, and one that is interrupted continues where it ended. Conflicts with writers
/// of these documents. Throws not_found if the database does not exist any more; another one of the same name
/// is not it.
CompactionStep compact(kv::Transaction& tx, const Database& database, const CompactionLimits& limits = {});

/// The number of changes that a compaction would search, counted up to `limit`.
std::int64_t count_uncompacted(kv::Transaction& tx, const Database& database, std::int64_t limit);

}  // namespace divan::docs
