#include "divan/index/index.h"

#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/document.h"
#include "divan/docs/reader.h"

namespace divan::index {
namespace {

// Sorts after all ids that begin with "_design/".
constexpr const char* kAfterDesignDocuments = "_design0";

IndexPtr find_in_design(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                        std::string_view design_id, std::string_view signature) {
  const docs::RevTree tree = docs::read_tree(tx, database, design_id, kv::Isolation::snapshot);
  if (tree.empty() || tree.front().deleted) return nullptr;
  const std::string body = docs::read_body(tx, database, tree.front());
  for (const auto& kind : kinds) {
    try {
      for (auto& index : kind->indexes(std::string(design_id), body, &database)) {
        if (index->signature() == signature) return index;
      }
    } catch (const Error&) {}  // malformed: defines no index
  }
  return nullptr;
}

}  // namespace

bool builds_itself(std::string_view body, std::string_view kind) {
  const auto autoupdate = json::member(body, "autoupdate");
  if (!autoupdate) return true;
  return *autoupdate != "false" && json::member(*autoupdate, kind) != "false";
}

std::vector<std::pair<std::string, docs::Leaf>> design_documents(kv::Transaction& tx,
                                                                 const docs::Database& database) {
  const docs::DocumentRange range{.start_id = std::string(docs::kDesignPrefix),
                                  .end_id = kAfterDesignDocuments};
  std::vector<std::pair<std::string, docs::Leaf>> designs;
  docs::visit_documents(tx, database, range, [&](const std::string& id, const docs::Leaf& winner) {
    designs.emplace_back(id, winner);
    return true;
  });
  return designs;
}

std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                                 const std::string& design_id, const docs::Leaf& winner) {
  std::vector<IndexPtr> found;
  const std::string body = docs::read_body(tx, database, winner);
  for (const auto& kind : kinds) {
    try {
      auto indexes = kind->indexes(design_id, body, &database);
      found.insert(found.end(), indexes.begin(), indexes.end());
    } catch (const Error& error) {
      log::warning("`{}` in `{}` is not indexed until it is changed: {}", design_id, database.name(),
                   error.what());
    }
  }
  return found;
}

std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds) {
  std::vector<IndexPtr> found;
  for (const auto& [id, winner] : design_documents(tx, database)) {
    auto indexes = indexes_of(tx, database, kinds, id, winner);
    found.insert(found.end(), indexes.begin(), indexes.end());
  }
  return found;
}

IndexPtr find_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                    std::string_view design_id, std::string_view signature) {
  if (auto index = find_in_design(tx, database, kinds, design_id, signature)) return index;
  for (auto& index : indexes_of(tx, database, kinds)) {
    if (index->signature() == signature) return index;
  }
  return nullptr;
}

void watch_design_documents(kv::Transaction& tx, const docs::Database& database) {
  tx.add_read_conflict({database.keys().leaves(docs::kDesignPrefix).begin,
                        database.keys().leaves(kAfterDesignDocuments).begin});
}

// From now on, purges after this sequence stay known (purged_documents.h).
kv::Versionstamp Index::begin(kv::Transaction& tx, const docs::Database&, const IndexKeys& keys) const {
  const auto sequence = find_sequence(tx, keys);
  if (!sequence) write_sequence(tx, keys, kv::Versionstamp());
  return sequence.value_or(kv::Versionstamp());
}

std::optional<kv::Versionstamp> find_sequence(kv::Transaction& tx, const IndexKeys& keys,
                                              kv::Isolation isolation) {
  const auto state = tx.get(keys.state(), isolation);
  if (!state) return std::nullopt;
  const auto sequence = kv::tuple::Reader(*state).take_versionstamp();
  if (!sequence) throw internal_error("An index's state in the store is damaged.");
  return sequence;
}

kv::Versionstamp read_sequence(kv::Transaction& tx, const IndexKeys& keys, kv::Isolation isolation) {
  return find_sequence(tx, keys, isolation).value_or(kv::Versionstamp());
}

void write_sequence(kv::Transaction& tx, const IndexKeys& keys, const kv::Versionstamp& sequence) {
  std::string value;
  kv::tuple::Packer(value).versionstamp(sequence);
  tx.set(keys.state(), value);
}

}  // namespace divan::index
