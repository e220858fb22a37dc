#include "divan/index/small_build.h"

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/index/source_documents.h"

namespace divan::index {
namespace {

// Maximum number of bytes of bodies.
constexpr std::size_t kMaxBytes = 1 << 20;

bool build(kv::Database& store, docs::Catalog& catalog, const docs::Database& database, const Index& index) {
  const auto check_exists = [&](kv::Transaction& tx) {
    if (catalog.open(tx, database.name()).number() != database.number())
      throw not_found("Database does not exist.");
  };
  const IndexKeys keys(database, index.signature());
  std::optional<kv::Versionstamp> sequence;
  SourceDocuments source;
  store.run([&](kv::Transaction& tx) {
    source = {};
    check_exists(tx);
    sequence = find_sequence(tx, keys, kv::Isolation::snapshot);
    if (sequence)
      source = read_source_documents(tx, database, index, *sequence, kMaxSmallBuild + 1, kMaxBytes);
  });
  const auto& documents = source.documents;
  if (documents.empty() || !source.is_all) return false;
  const auto mapped = index.map(documents);
  if (mapped->documents() < documents.size()) return false;
  const IndexedSoFar so_far{.behind = static_cast<std::int64_t>(documents.size())};
  if (mapped->prepare(store, keys, 0, so_far) < documents.size()) return false;
  mapped->commit([&] {
    const auto tx = store.begin();
    check_exists(*tx);
    if (find_sequence(*tx, keys) != sequence) throw IndexChanged();
    mapped->write(*tx, keys);
    const auto& last = documents.back().change.sequence;
    DIVAN_CHECK(last > *sequence, "the index's sequence would decrease");
    write_sequence(*tx, keys, last);
    catalog.changed(*tx, database, events::DatabaseEvent::index_commit, index.design_document());
    tx->commit();
  });
  return true;
}

}  // namespace

bool try_small_build(kv::Database& store, docs::Catalog& catalog, const docs::Database& database,
                     const Index& index) {
  DIVAN_CHECK(index.allows_small_builds(), "an index of kind {} is built without a job", index.kind());
  try {
    return build(store, catalog, database, index);
  } catch (const std::exception& error) {
    log::debug("A job builds `{}` in `{}`, since a small build has failed: {}", index.design_document(),
               database.name(), error.what());
    return false;
  }
}

}  // namespace divan::index
