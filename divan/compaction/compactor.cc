#include "divan/compaction/compactor.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/docs/compaction.h"
#include "divan/index/purged_documents.h"

namespace divan::compaction {
namespace {

// Between two searches for databases to compact.
constexpr auto kSearchInterval = std::chrono::minutes(1);

// The ratio of all bytes to those that a compaction leaves must have reached the priority, as in CouchDB.
bool is_worthwhile(const docs::DatabaseInfo& info, double min_priority, std::int64_t min_size) {
  const std::int64_t file = info.file_bytes();
  if (file < min_size || file == info.active_bytes()) return false;
  return static_cast<double>(file) >= min_priority * static_cast<double>(info.active_bytes());
}

}  // namespace

Compactor::Compactor(kv::Database& store, docs::Catalog& catalog, const Clock& clock, const Config& config,
                     bool is_automatic)
    : store_(store),
      catalog_(catalog),
      clock_(clock),
      config_(config),
      is_automatic_(is_automatic),
      next_search_(clock.now() + kSearchInterval),
      loop_(clock, "compaction", [this] { return step(); }) {}

void Compactor::request(const docs::Database& database) {
  {
    const std::scoped_lock lock(mutex_);
    const auto is_same = [&](const Running& other) { return other.database.number() == database.number(); };
    if (std::ranges::any_of(running_, is_same)) return;
    const std::int64_t now = clock_.wall_ms();
    running_.push_back({.database = database, .started_ms = now, .updated_ms = now});
  }
  loop_.notify();
}

std::vector<Running> Compactor::running() const {
  const std::scoped_lock lock(mutex_);
  return {running_.begin(), running_.end()};
}

bool Compactor::is_running(const docs::Database& database) const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(
      running_, [&](const Running& running) { return running.database.number() == database.number(); });
}

MonotonicTime Compactor::step() {
  if (is_automatic_ && clock_.now() >= next_search_) {
    request_automatic();
    next_search_ = clock_.now() + kSearchInterval;
  }
  for (;;) {
    std::vector<Running> all = running();
    if (all.empty() || loop_.stopped()) break;
    for (Running& compaction : all) {
      if (loop_.stopped()) break;
      const bool is_more = advance(compaction);
      const std::scoped_lock lock(mutex_);
      const auto entry = std::ranges::find_if(running_, [&](const Running& running) {
        return running.database.number() == compaction.database.number();
      });
      if (entry == running_.end()) continue;
      *entry = compaction;
      if (!is_more) running_.erase(entry);
    }
  }
  return is_automatic_ ? next_search_ : MonotonicTime::max();
}

bool Compactor::advance(Running& compaction) {
  const docs::Database& database = compaction.database;
  try {
    docs::CompactionStep step;
    store_.run([&](kv::Transaction& tx) { step = docs::compact(tx, database); });
    compaction.changes += static_cast<std::int64_t>(step.changes);
    compaction.updated_ms = clock_.wall_ms();
    if (!step.is_last) return true;
    return store_.run([&](kv::Transaction& tx) {
      const auto present = catalog_.find(tx, database.name());
      return present && present->number() == database.number() &&
             index::remove_purged_documents(tx, *present);
    });
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    const bool is_deleted = known != nullptr && known->status() == 404;
    if (!is_deleted) log::error("Cannot compact `{}`: {}", database.name(), error.what());
    return false;
  }
}

void Compactor::request_automatic() {
  const double min_priority = config_.get_number(kSection, kMinPriority, kDefaultMinPriority, 1, 1'000'000);
  const std::int64_t min_size = config_.get_int(kSection, kMinSize, kDefaultMinSize, 0, INT64_MAX);
  for (const auto& name : store_.run([&](kv::Transaction& tx) { return catalog_.list(tx); })) {
    if (loop_.stopped()) break;
    store_.run([&](kv::Transaction& tx) {
      const auto database = catalog_.find(tx, name);
      if (database && is_worthwhile(docs::read_info(tx, *database), min_priority, min_size))
        request(*database);
    });
  }
}

}  // namespace divan::compaction
