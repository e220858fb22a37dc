#include "divan/docs/compaction.h"

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/bodies.h"
#include "divan/docs/changes.h"
#include "divan/docs/contents.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/sequence.h"

namespace divan::docs {
namespace {

constexpr std::size_t kMaxChanges = 1'000;
// Transactions end at this size, like those of writers.
constexpr std::size_t kFullBytes = 1'500'000;

kv::Versionstamp read_position(kv::Transaction& tx, const Database& database) {
  const auto stored = read_config(tx, database, kCompacted);
  const auto text = stored ? json::string_value(*stored) : std::nullopt;
  return text ? parse_sequence(*text) : kv::Versionstamp();
}

// Rows of older versions do not say how many other leaves there are.
bool may_have_old_revisions(const Change& change) {
  return change.winner.generation > 1 || change.other_leaves.value_or(1) > 0;
}

bool has_old_revisions(const RevTree& tree) {
  return std::ranges::any_of(tree, [](const Leaf& leaf) { return !leaf.old.empty(); });
}

// Writers of the document conflict.
OldSizes remove_old_revisions(kv::Transaction& tx, const Database& database, const std::string& id,
                              ContentWriter& contents) {
  OldSizes removed;
  if (!has_old_revisions(read_tree(tx, database, id, kv::Isolation::snapshot))) return removed;
  RevTree tree = read_tree(tx, database, id);
  removed = old_sizes(tree);
  for (Leaf& leaf : tree) {
    if (leaf.old.empty()) continue;
    for (const OldRevision& old : leaf.old) remove_body(tx, database, old, contents);
    leaf.old.clear();
    tx.set(database.keys().leaf(id, leaf.deleted, leaf.revision()), encode_leaf(leaf));
  }
  return removed;
}

}  // namespace

CompactionStep compact(kv::Transaction& tx, const Database& database) {
  const Database present = database.catalog().open(tx, database.name());
  if (present.number() != database.number()) throw not_found("Database does not exist.");
  std::vector<Change> changes;
  visit_changes(tx, present, read_position(tx, present), [&](const Change& change) {
    changes.push_back(change);
    return changes.size() < kMaxChanges;
  });
  std::vector<std::string> ids;
  for (const Change& change : changes) {
    if (may_have_old_revisions(change)) ids.push_back(change.id);
  }
  prefetch_trees(tx, present, ids);
  ContentWriter contents(tx, present);
  OldSizes removed;
  CompactionStep step;
  for (const Change& change : changes) {
    if (tx.approximate_size() >= kFullBytes) break;
    ++step.changes;
    if (!may_have_old_revisions(change)) continue;
    const OldSizes sizes = remove_old_revisions(tx, present, change.id, contents);
    removed.bodies -= sizes.bodies;
    removed.attachments -= sizes.attachments;
  }
  contents.finish();
  add_old_sizes(tx, present, removed);
  step.is_last = step.changes == changes.size() && changes.size() < kMaxChanges;
  if (step.changes > 0)
    write_config(tx, present, kCompacted, json::quoted(to_sequence(changes[step.changes - 1].sequence)));
  return step;
}

std::int64_t count_uncompacted(kv::Transaction& tx, const Database& database, std::int64_t limit) {
  return count_changes(tx, database, read_position(tx, database), limit);
}

}  // namespace divan::docs
