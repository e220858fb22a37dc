#include "divan/compaction/compactor.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/docs/reader.h"
#include "divan/index/purged_documents.h"

namespace divan::compaction {
namespace {

// Between two searches for databases to compact.
constexpr auto kSearchInterval = std::chrono::minutes(1);
// After a failure.
constexpr auto kRetryInterval = std::chrono::hours(1);
constexpr int kMaxConflicts = 1'000;

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
    if (Running* running = find_running(database)) {
      running->is_requested_again = true;
      return;
    }
    const std::int64_t now = clock_.wall_ms();
    running_.push_back({.database = database, .started_ms = now, .updated_ms = now});
  }
  loop_.notify();
}

Running* Compactor::find_running(const docs::Database& database) {
  const auto found = std::ranges::find_if(
      running_, [&](const Running& running) { return running.database.number() == database.number(); });
  return found == running_.end() ? nullptr : &*found;
}

std::vector<Running> Compactor::running() const {
  const std::scoped_lock lock(mutex_);
  return running_;
}

bool Compactor::is_running(const docs::Database& database) {
  const std::scoped_lock lock(mutex_);
  return find_running(database) != nullptr;
}

MonotonicTime Compactor::step() {
  for (;;) {
    if (is_automatic_ && clock_.now() >= next_search_) {
      request_automatic();
      next_search_ = clock_.now() + kSearchInterval;
    }
    std::vector<Running> all = running();
    if (all.empty() || loop_.stopped()) break;
    for (Running& compaction : all) {
      if (loop_.stopped()) break;
      const bool is_more = advance(compaction);
      const std::scoped_lock lock(mutex_);
      Running* const entry = find_running(compaction.database);
      DIVAN_CHECK(entry != nullptr, "a compaction was removed by another thread");
      compaction.is_requested_again = entry->is_requested_again;
      if (!is_more && std::exchange(compaction.is_requested_again, false)) {
        compaction.end.reset();
      } else if (!is_more) {
        running_.erase(running_.begin() + (entry - running_.data()));
        continue;
      }
      *entry = compaction;
    }
  }
  return is_automatic_ ? next_search_ : MonotonicTime::max();
}

bool Compactor::advance(Running& compaction) {
  const docs::Database& database = compaction.database;
  const auto fail = [&](const std::exception& error) {
    log::error("Cannot compact `{}`: {}", database.name(), error.what());
    failed_[database.number()] = clock_.now() + kRetryInterval;
    return false;
  };
  try {
    const bool is_more = try_advance(compaction);
    if (!is_more) failed_.erase(database.number());
    return is_more;
  } catch (const Error& error) {
    if (error.status() != 404) return fail(error);
    failed_.erase(database.number());  // the database was deleted
    return false;
  } catch (const std::exception& error) { return fail(error); }
}

bool Compactor::try_advance(Running& compaction) {
  const docs::Database& database = compaction.database;
  const auto tx = store_.begin();
  docs::CompactionStep step;
  try {
    if (!compaction.end) compaction.end = docs::last_sequence(*tx, database);
    step = docs::compact(*tx, database, {.changes = compaction.changes_at_once, .end = compaction.end});
    tx->commit();
  } catch (const kv::Error& error) {
    // Writers of these documents come first. It is unlikely that all of them are written all the time.
    if (++compaction.conflicts > kMaxConflicts) throw;
    compaction.changes_at_once = std::max<std::size_t>(1, compaction.changes_at_once / 2);
    tx->on_error(error);
    return true;
  }
  compaction.conflicts = 0;
  compaction.changes_at_once = std::min(docs::kMaxCompactedChanges, compaction.changes_at_once * 2);
  compaction.changes += static_cast<std::int64_t>(step.changes);
  compaction.updated_ms = clock_.wall_ms();
  if (!step.is_last) return true;
  return store_.run([&](kv::Transaction& last) {
    const auto present = catalog_.find(last, database.name());
    return present && present->number() == database.number() &&
           index::remove_purged_documents(last, *present);
  });
}

void Compactor::request_automatic() {
  const double min_priority = config_.get_number(kSection, kMinPriority, kDefaultMinPriority, 1, 1'000'000);
  const std::int64_t min_size = config_.get_int(kSection, kMinSize, kDefaultMinSize, 0, INT64_MAX);
  for (const auto& name : store_.run([&](kv::Transaction& tx) { return catalog_.list(tx); })) {
    if (loop_.stopped()) break;
    const auto database = store_.run([&](kv::Transaction& tx) {
      auto found = catalog_.find(tx, name);
      if (found && !is_worthwhile(docs::read_info(tx, *found), min_priority, min_size)) found.reset();
      return found;
    });
    if (!database) continue;
    const auto failure = failed_.find(database->number());
    if (failure == failed_.end() || failure->second <= clock_.now()) request(*database);
  }
}

}  // namespace divan::compaction
