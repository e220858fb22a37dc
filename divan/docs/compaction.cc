#include "divan/docs/compaction.h"

#include "divan/base/error.h"
#include "divan/docs/bodies.h"
#include "divan/docs/changes.h"
#include "divan/docs/contents.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/writer.h"

namespace divan::docs {
namespace {

// Rows of older versions do not say how many other leaves there are.
bool may_have_old_revisions(const Change& change) {
  return change.winner.generation > 1 || change.other_leaves.value_or(1) > 0;
}

bool has_old_revisions(const RevTree& tree) {
  return std::ranges::any_of(tree, [](const Leaf& leaf) { return !leaf.old.empty(); });
}

// Removes those of a document, as far as they fit in the transaction. Writers of the document conflict.
class DocumentCompaction {
 public:
  DocumentCompaction(kv::Transaction& tx, const Database& database)
      : tx_(tx), database_(database), contents_(tx, database) {}

  // Returns false if some are left.
  bool compact(const std::string& id) {
    // A snapshot, so that documents without any cause no conflicts.
    if (!has_old_revisions(read_tree(tx_, database_, id, kv::Isolation::snapshot))) return true;
    for (Leaf& leaf : read_tree(tx_, database_, id)) {
      if (leaf.old.empty()) continue;
      if (tx_.approximate_size() >= kFullTransactionBytes) return false;
      for (const OldRevision& old : leaf.old) {
        removed_.add(old);
        remove_body(tx_, database_, old, contents_);
      }
      leaf.old.clear();
      tx_.set(database_.keys().leaf(id, leaf.deleted, leaf.revision()), encode_leaf(leaf));
    }
    return true;
  }

  void finish() {
    contents_.finish();
    add_old_sizes(tx_, database_, {-removed_.bodies, -removed_.attachments});
  }

 private:
  kv::Transaction& tx_;
  const Database& database_;
  ContentWriter contents_;
  OldSizes removed_;
};

}  // namespace

CompactionStep compact(kv::Transaction& tx, const Database& database, const CompactionLimits& limits) {
  const Database present = database.catalog().open(tx, database.name());
  if (present.number() != database.number()) throw not_found("Database does not exist.");
  std::vector<Change> changes;
  visit_changes(tx, present, read_position(tx, present, kCompacted), [&](const Change& change) {
    if (limits.end && change.sequence > *limits.end) return false;
    changes.push_back(change);
    return changes.size() < limits.changes;
  });
  std::vector<std::string> ids;
  for (const Change& change : changes) {
    if (may_have_old_revisions(change)) ids.push_back(change.id);
  }
  prefetch_trees(tx, present, ids);
  DocumentCompaction compaction(tx, present);
  CompactionStep step;
  for (const Change& change : changes) {
    if (tx.approximate_size() >= kFullTransactionBytes) break;
    if (may_have_old_revisions(change) && !compaction.compact(change.id)) break;
    ++step.changes;
  }
  compaction.finish();
  step.is_last = step.changes == changes.size() && changes.size() < limits.changes;
  if (step.changes > 0) write_position(tx, present, kCompacted, changes[step.changes - 1].sequence);
  return step;
}

std::int64_t count_uncompacted(kv::Transaction& tx, const Database& database, std::int64_t limit) {
  return count_changes(tx, database, read_position(tx, database, kCompacted), limit);
}

}  // namespace divan::docs
