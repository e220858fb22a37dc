#include "divan/index/unused.h"

#include <set>

#include "divan/index/serving_index.h"

namespace divan::index {

std::size_t remove_unused(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds) {
  watch_design_documents(tx, database);
  std::set<std::string> used;
  for (const auto& [id, winner] : design_documents(tx, database)) {
    for (const auto& index : indexes_of(tx, database, kinds, id, winner)) {
      used.insert(index->signature());
      used.insert(serving_index(tx, database, kinds, winner, index)->signature());
    }
  }
  for (const auto& kind : kinds) {
    for (auto& signature : kind->kept(tx, database)) used.insert(std::move(signature));
  }
  const std::string prefix = database.keys().section(docs::Section::indexes);
  kv::KeyRange rest = kv::below(prefix);
  std::size_t removed = 0;
  for (;;) {
    const auto next = tx.get_range(rest, {.limit = 1, .isolation = kv::Isolation::snapshot});
    if (next.rows.empty()) return removed;
    const std::string_view key = next.rows.front().key;
    const auto signature = kv::tuple::Reader(key.substr(prefix.size())).take_bytes();
    if (!signature) throw internal_error("An index's key in the store is damaged.");
    const kv::KeyRange all = IndexKeys(database, *signature).all();
    if (!used.contains(*signature)) {
      tx.clear_range(all);
      ++removed;
    }
    rest.begin = all.end;
  }
}

}  // namespace divan::index
