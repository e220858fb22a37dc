#include "divan/index/serving_index.h"

#include <algorithm>
#include <set>

#include "divan/base/json.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"

namespace divan::index {
namespace {

std::string setting_name(std::string_view design_id) { return "answering/" + std::string(design_id); }

// The part of a design document that its indexes depend on: each kind has its definitions in the member of
// its name.
std::string definition(std::string_view body, const Kinds& kinds) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  const auto copy = [&](std::string_view name) {
    if (const auto value = json::member(body, name)) writer.key(name).raw(*value);
  };
  copy("language");
  copy("options");
  for (const auto& kind : kinds) copy(kind->name());
  writer.end_object();
  return out;
}

std::vector<IndexPtr> parse(const docs::Database& database, const Kinds& kinds, const std::string& design_id,
                            std::string_view body) {
  std::vector<IndexPtr> found;
  for (const auto& kind : kinds) {
    if (!kind->has_rows()) continue;
    try {
      auto indexes = kind->indexes(design_id, body, &database);
      found.insert(found.end(), indexes.begin(), indexes.end());
    } catch (const Error&) {}  // malformed: defines no index
  }
  return found;
}

std::set<std::string> signatures(const std::vector<IndexPtr>& indexes) {
  std::set<std::string> found;
  for (const auto& index : indexes) found.insert(index->signature());
  return found;
}

// Returns true if the index has all changes up to the design document's last change.
bool is_complete(kv::Transaction& tx, const docs::Database& database, const Index& index,
                 const docs::Leaf& winner) {
  return read_sequence(tx, IndexKeys(database, index.signature()), kv::Isolation::snapshot) >=
         winner.sequence;
}

void forget(kv::Transaction& tx, const docs::Database& database, const std::string& name) {
  if (docs::read_config(tx, database, name)) tx.clear(database.keys().config(name));
}

}  // namespace

void retain_serving_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                          const std::string& design_id, std::string_view new_body) {
  const std::string name = setting_name(design_id);
  const auto tree = docs::read_tree(tx, database, design_id, kv::Isolation::snapshot);
  if (tree.empty()) return forget(tx, database, name);  // it may have been purged
  if (tree.front().deleted) return forget(tx, database, name);
  const std::string body = docs::read_body(tx, database, tree.front());
  const auto before = parse(database, kinds, design_id, body);
  const bool complete = std::all_of(before.begin(), before.end(), [&](const auto& index) {
    return is_complete(tx, database, *index, tree.front());
  });
  // Otherwise the current serving index is kept.
  if (!complete) return;
  const std::string kept = definition(body, kinds);
  const bool same = signatures(before) == signatures(parse(database, kinds, design_id, new_body));
  if (same || before.empty() || kept.size() > kv::kMaxValueBytes) return forget(tx, database, name);
  docs::write_config(tx, database, name, kept);
}

IndexPtr serving_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                       const docs::Leaf& winner, const IndexPtr& current) {
  if (is_complete(tx, database, *current, winner)) return current;
  const auto kept = docs::read_config(tx, database, setting_name(current->design_document()));
  if (!kept) return current;
  for (auto& index : parse(database, kinds, current->design_document(), *kept)) {
    if (index->kind() != current->kind() || index->name() != current->name()) continue;
    // Its rows may have been removed.
    const auto built = read_sequence(tx, IndexKeys(database, index->signature()), kv::Isolation::snapshot);
    if (built != kv::Versionstamp()) return std::move(index);
  }
  return current;
}

}  // namespace divan::index
