// Prefetches documents from a remote store, so that their reads share a round trip. No effect on other
// stores.
#pragma once

#include <span>

#include "divan/docs/catalog.h"
#include "divan/docs/rev_tree.h"

namespace divan::docs {

/// Prefetches what opening the database `name` and reading the trees of documents reads; with `to_write`,
/// also what writing them reads.
void prefetch_documents(kv::Transaction& tx, Catalog& catalog, std::string_view name,
                        std::span<const std::string_view> ids, bool to_write = false);
void prefetch_trees(kv::Transaction& tx, const Database& database, std::span<const std::string> ids);
void prefetch_bodies(kv::Transaction& tx, const Database& database, std::span<const Leaf> leaves);
/// Prefetches the bodies of the winners, up to about `max_bytes`; reads the trees.
void prefetch_winners(kv::Transaction& tx, const Database& database, std::span<const std::string> ids,
                      std::uint64_t max_bytes);
inline void prefetch_document(kv::Transaction& tx, Catalog& catalog, std::string_view name,
                              std::string_view id) {
  prefetch_documents(tx, catalog, name, std::span(&id, 1));
}

}  // namespace divan::docs
