#include "divan/index/index.h"

#include "divan/base/log.h"
#include "divan/docs/document.h"
#include "divan/docs/reader.h"

namespace divan::index {
namespace {

// Behind all ids that begin with "_design/".
constexpr const char* kAfterDesignDocuments = "_design0";

}  // namespace

std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds) {
  std::vector<IndexPtr> found;
  const docs::DocumentRange range{.start_id = std::string(docs::kDesignPrefix),
                                  .end_id = kAfterDesignDocuments};
  std::vector<std::pair<std::string, docs::Leaf>> designs;
  docs::visit_documents(tx, database, range, [&](const std::string& id, const docs::Leaf& winner) {
    designs.emplace_back(id, winner);
    return true;
  });
  for (const auto& [id, winner] : designs) {
    const std::string body = docs::read_body(tx, database, winner);
    for (const auto& kind : kinds) {
      try {
        auto indexes = kind->indexes(id, body);
        found.insert(found.end(), indexes.begin(), indexes.end());
      } catch (const Error& error) {
        log::warning("{} of {} is not indexed: {}", id, database.name(), error.what());
      }
    }
  }
  return found;
}

IndexPtr find_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                    std::string_view design_id, std::string_view signature) {
  const docs::RevTree tree = docs::read_tree(tx, database, design_id, kv::Isolation::snapshot);
  if (tree.empty() || tree.front().deleted) return nullptr;
  const std::string body = docs::read_body(tx, database, tree.front());
  for (const auto& kind : kinds) {
    for (auto& index : kind->indexes(std::string(design_id), body)) {
      if (index->signature() == signature) return index;
    }
  }
  return nullptr;
}

kv::Versionstamp read_sequence(kv::Transaction& tx, const IndexKeys& keys, kv::Isolation isolation) {
  const auto state = tx.get(keys.state(), isolation);
  if (!state) return {};
  const auto sequence = kv::tuple::Reader(*state).take_versionstamp();
  if (!sequence) throw internal_error("An index's state in the store is damaged.");
  return *sequence;
}

void write_sequence(kv::Transaction& tx, const IndexKeys& keys, const kv::Versionstamp& sequence) {
  std::string value;
  kv::tuple::Packer(value).versionstamp(sequence);
  tx.set(keys.state(), value);
}

}  // namespace divan::index
