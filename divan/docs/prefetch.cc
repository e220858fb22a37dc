#include "divan/docs/prefetch.h"

#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"
#include "divan/docs/validation.h"

namespace divan::docs {

void prefetch_documents(kv::Transaction& tx, Catalog& catalog, std::string_view name,
                        std::span<const std::string_view> ids, bool to_write) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  if (const auto database = catalog.prefetch(reads, name)) {
    for (const auto id : ids) reads.range(database->keys().leaves(id));
    if (to_write) {
      reads.key(database->keys().config(kRevsLimit));
      reads.key(database->keys().config(kValidators));
    }
  }
  tx.prefetch(reads);
}

void prefetch_trees(kv::Transaction& tx, const Database& database, std::span<const std::string> ids) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  for (const auto& id : ids) reads.range(database.keys().leaves(id));
  tx.prefetch(reads);
}

void prefetch_bodies(kv::Transaction& tx, const Database& database, std::span<const Leaf> leaves) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  for (const auto& leaf : leaves) {
    for (std::uint32_t chunk = 0; chunk < leaf.chunks; ++chunk)
      reads.key(database.keys().body(leaf.sequence, chunk));
  }
  tx.prefetch(reads);
}

void prefetch_winners(kv::Transaction& tx, const Database& database, std::span<const std::string> ids,
                      std::uint64_t max_bytes) {
  if (!tx.is_remote()) return;
  std::vector<Leaf> winners;
  std::uint64_t bytes = 0;
  for (const auto& id : ids) {
    if (bytes >= max_bytes) break;
    auto tree = read_tree(tx, database, id, kv::Isolation::snapshot);
    if (tree.empty() || tree.front().deleted) continue;
    bytes += tree.front().body_bytes;
    winners.push_back(std::move(tree.front()));
  }
  prefetch_bodies(tx, database, winners);
}

}  // namespace divan::docs
