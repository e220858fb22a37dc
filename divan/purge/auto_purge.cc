#include "divan/purge/auto_purge.h"

#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/index/purged_documents.h"
#include "divan/kv/check.h"
#include "divan/purge/times.h"
#include "divan/purge/ttl.h"

namespace divan::purge {
namespace {

// Changes that are searched for deleted documents in one transaction.
constexpr std::size_t kChangesAtOnce = 1'000;
// The name of the setting of a database with the position up to which its changes were searched.
constexpr std::string_view kPosition = "auto_purge_position";

std::chrono::milliseconds interval_of(const Config& config) {
  return parse_period(config.get(kAutoPurgeSection, kRepeat, kDefaultRepeat)).value_or(std::chrono::hours(1));
}

// The deleted documents among the next changes.
struct Found {
  std::optional<docs::Database> database{};
  std::vector<docs::PurgeRequest> deleted{};
  kv::Versionstamp position{};  // up to which changes were searched
  bool is_all = true;           // there are no further ones that are old enough
};

Found find_deleted(kv::Transaction& tx, docs::Catalog& catalog, const std::string& name,
                   const std::string& default_ttl, std::int64_t now_ms) {
  Found found;
  const auto database = catalog.find(tx, name);
  if (!database) return found;
  const auto ttl =
      deleted_document_ttl(docs::read_config(tx, *database, docs::kAutoPurge).value_or(""), default_ttl);
  if (!ttl) return found;
  const std::int64_t before_ms = now_ms - std::chrono::milliseconds(*ttl).count();
  // The age of a restored database's documents cannot be derived from their versions: all count from the
  // restore.
  const auto restored = docs::read_config(tx, *database, docs::kRestoredAt);
  if (restored && json::int_value(*restored).value_or(0) >= before_ms) return found;
  const auto version = version_before(tx, before_ms);
  if (!version) return found;
  found.position = docs::read_position(tx, *database, kPosition);
  std::size_t searched = 0;
  std::vector<std::string> ids;
  docs::visit_changes(tx, *database, found.position, [&](const docs::Change& change) {
    if (kv::is_beyond(change.sequence, *version)) return false;
    found.position = change.sequence;
    if (change.deleted) ids.push_back(change.id);
    found.is_all = ++searched < kChangesAtOnce;
    return found.is_all;
  });
  if (searched == 0) return found;
  found.database = database;
  docs::prefetch_trees(tx, *database, ids);
  for (auto& id : ids) {
    const auto tree = docs::read_tree(tx, *database, id, kv::Isolation::snapshot);
    found.deleted.push_back({std::move(id), {}});
    for (const auto& leaf : tree) found.deleted.back().revisions.push_back(leaf.revision());
  }
  return found;
}

}  // namespace

AutoPurge::AutoPurge(kv::Database& store, docs::Catalog& catalog, const Clock& clock, const Config& config)
    : store_(store), catalog_(catalog), clock_(clock), config_(config), loop_(clock, "purge", [this] {
        return step();
      }) {}

MonotonicTime AutoPurge::step() {
  const auto interval = interval_of(config_);
  store_.run([&](kv::Transaction& tx) { sample_time(tx, clock_.wall_ms(), interval); });
  const auto names = store_.run([&](kv::Transaction& tx) { return catalog_.list(tx); });
  for (const auto& name : names) {
    if (loop_.stopped()) break;
    try {
      purge_database(name);
    } catch (const std::exception& error) {
      log::error("Cannot purge deleted documents of `{}`; trying again at the next pass: {}", name,
                 error.what());
    }
  }
  return clock_.now() + interval;
}

void AutoPurge::purge_database(const std::string& name) {
  const std::string default_ttl = config_.get(kAutoPurgeSection, kDefaultTtl, "");
  std::size_t purged = 0;
  for (bool is_all = false; !is_all && !loop_.stopped();) {
    Found found;
    store_.run([&](kv::Transaction& tx) {
      found = find_deleted(tx, catalog_, name, default_ttl, clock_.wall_ms());
    });
    is_all = found.is_all;
    if (!found.database) continue;
    docs::purge(store_, *found.database, found.deleted);
    purged += found.deleted.size();
    store_.run([&](kv::Transaction& tx) {
      const auto database = catalog_.open(tx, name);
      if (database.number() != found.database->number()) return;
      // Another process may have come further.
      if (docs::read_position(tx, database, kPosition) < found.position)
        docs::write_position(tx, database, kPosition, found.position);
    });
  }
  if (purged > 0) log::info("Purged {} deleted documents from `{}`.", purged, name);
  bool more = true;
  while (more && !loop_.stopped()) {
    store_.run([&](kv::Transaction& tx) {
      const auto database = catalog_.find(tx, name);
      more = database && index::remove_purged_documents(tx, *database);
    });
  }
}

}  // namespace divan::purge
