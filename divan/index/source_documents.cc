#include "divan/index/source_documents.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/docs/document.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"

namespace divan::index {
namespace {

// Returns the number of bytes that it has read.
std::size_t read_history(kv::Transaction& tx, const docs::Database& database, SourceDocument& document) {
  const auto tree = docs::read_tree(tx, database, document.change.id, kv::Isolation::snapshot);
  if (tree.empty()) return 0;
  const docs::Leaf& winner = tree.front();
  document.exists_since = winner.exists_since;
  if (!winner.deleted) return 0;
  document.tombstone = docs::read_body(tx, database, winner);
  const auto last = std::ranges::find(winner.old, false, &docs::OldRevision::deleted);
  if (last != winner.old.end()) document.last_body = docs::read_body(tx, database, winner.ancestor(*last));
  return document.tombstone.size() + document.last_body.size();
}

// As in CouchDB, functions receive the ids of conflicting leaves.
bool may_have_conflicts(const docs::Change& change) { return !change.deleted && change.other_leaves != 0; }

}  // namespace

SourceDocuments read_source_documents(kv::Transaction& tx, const docs::Database& database, const Index& index,
                                      const kv::Versionstamp& since, std::size_t limit,
                                      std::size_t max_bytes) {
  SourceDocuments result;
  auto [changes, is_all] = docs::changes_for_indexes(tx, database, since, limit);
  for (auto& change : changes) {
    if (change.deleted) change.chunks = 0;
  }
  const auto bodies = docs::read_bodies(tx, database, changes, max_bytes);
  DIVAN_CHECK(bodies.size() <= changes.size(), "{} bodies of {} changes", bodies.size(), changes.size());
  result.is_all = is_all && bodies.size() == changes.size();
  result.documents.reserve(bodies.size());
  const bool reads_history = index.reads_history();
  std::vector<std::string> with_trees;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (reads_history || may_have_conflicts(changes[i])) with_trees.push_back(changes[i].id);
  }
  docs::prefetch_trees(tx, database, with_trees);
  std::size_t history_bytes = 0;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (history_bytes > max_bytes) {
      result.is_all = false;
      break;
    }
    SourceDocument document{std::move(changes[i])};
    if (reads_history) history_bytes += read_history(tx, database, document);
    if (!document.change.deleted) {
      docs::append_open_document(document.json, document.change.id, document.change.winner, false, bodies[i]);
      if (may_have_conflicts(document.change)) {
        docs::append_conflicts(document.json,
                               docs::read_tree(tx, database, document.change.id, kv::Isolation::snapshot));
      }
      document.json += '}';
    }
    result.documents.push_back(std::move(document));
  }
  return result;
}

}  // namespace divan::index
