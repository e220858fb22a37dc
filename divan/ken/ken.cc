#include "divan/ken/ken.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan::ken {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// After a failure that concerns a whole database, or the list of them.
constexpr Duration kFailurePause = std::chrono::seconds(5);
// How often active jobs are checked, in case a watch was lost.
constexpr Duration kSweep = std::chrono::seconds(5);
// A stream of writes to one database wakes the listener once in this time. The first event after a quiet
// period is handled at once.
constexpr Duration kListenerRest = milliseconds(5);

}  // namespace

Ken::Ken(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, const index::Kinds& kinds,
         const Clock& clock, Rng& rng, Config& config, KenOptions options)
    : store_(store),
      catalog_(catalog),
      queue_(queue),
      kinds_(kinds),
      clock_(clock),
      rng_(rng),
      config_(config),
      options_(options),
      settings_(read_settings(config)),
      next_round_(clock.now()),
      sweep_at_(clock.now() + kSweep),
      pruned_at_(clock.now()),
      loop_(clock, "ken", [this] {
        if (step()) return clock_.now();
        std::lock_guard lock(mutex_);
        return next_time();
      }) {}

void Ken::start() {
  listener_.emplace(catalog_.bus(), clock_,
                    events::ListenerCallbacks{.event = [this](const events::Event& event) { handle(event); },
                                              .lagged = [this](std::uint64_t) { add_all(); },
                                              .rest = kListenerRest});
  listener_->listen({.all = true});
  add_all();
  loop_.start();
}

void Ken::handle(const events::Event& event) {
  switch (events::database_event_of(event.kind).value_or(events::DatabaseEvent::local_updated)) {
    case events::DatabaseEvent::updated: add(event.database); break;
    case events::DatabaseEvent::ddoc_updated: add_all_shards(event.database); break;
    case events::DatabaseEvent::deleted: remove(event.database, true); break;
    default: break;
  }
}

void Ken::add(const std::string& database) {
  {
    std::lock_guard lock(mutex_);
    const auto retry = retries_.find(database);
    if (retry != retries_.end() && !retry->second.error.empty() && retry->second.at > clock_.now()) return;
    if (!put_in_queue(database)) return;
  }
  loop_.notify();
}

void Ken::add_all() {
  {
    std::lock_guard lock(mutex_);
    all_at_ = clock_.now();
  }
  loop_.notify();
}

void Ken::remove(const std::string& database, bool keep_new) {
  {
    std::lock_guard lock(mutex_);
    if (queued_.erase(database) > 0) {
      const auto erased = std::erase(waiting_, database);
      DIVAN_CHECK(erased <= 1, "a database is in the queue {} times", erased);
    }
    retries_.erase(database);
    waiting_indexes_.erase(database);
    left_out_.erase(database);
    removals_[database] = {clock_.now(), keep_new};
  }
  loop_.notify();
}

void Ken::reconsider() {
  {
    std::lock_guard lock(mutex_);
    settings_changed_ = true;
    for (const auto& [database, retry] : retries_) {
      if (retry.error.empty()) put_in_queue(database);
    }
  }
  loop_.notify();
}

// Returns false if it was in the queue already. Needs mutex_.
bool Ken::put_in_queue(const std::string& database) {
  if (!queued_.insert(database).second) return false;
  waiting_.push_back(database);
  return true;
}

std::int64_t Ken::set(std::string_view name, std::int64_t value) {
  const std::int64_t old = change_setting(config_, name, value);
  reconsider();
  return old;
}

// When step() has something to do. Needs mutex_.
MonotonicTime Ken::next_time() const {
  if (settings_changed_ || !unsettled_.empty()) return MonotonicTime::min();
  MonotonicTime next = std::min(all_at_, pruned_at_ + settings_.prune_interval);
  for (const auto& [database, removal] : removals_) next = std::min(next, removal.at);
  for (const auto& [database, retry] : retries_) {
    if (!queued_.contains(database)) next = std::min(next, retry.at);
  }
  const std::int64_t active = this->active();
  if (active > 0) next = std::min(next, sweep_at_);
  if (waiting_.empty() || active >= settings_.channels()) return next;
  return round_left_ > 0 ? MonotonicTime::min() : std::min(next, next_round_);
}

bool Ken::step() {
  read_settings_again();
  run_periodic_tasks();
  return remove_one() || settle_one() || queue_all_if_due() || scan_one();
}

void Ken::read_settings_again() {
  {
    std::lock_guard lock(mutex_);
    settings_changed_ = false;
  }
  try {
    const Settings settings = read_settings(config_);
    std::lock_guard lock(mutex_);
    settings_ = settings;
  } catch (const Error& error) {
    log::error("The settings of ken are invalid, and the previous ones stay in use: {}", error.what());
  }
}

// Queues the databases whose retry is due, checks active jobs now and then, and forgets idle indexes.
void Ken::run_periodic_tasks() {
  std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.now();
  for (const auto& [database, retry] : retries_) {
    if (retry.at <= now) put_in_queue(database);
  }
  if (sweep_at_ <= now) {
    sweep_at_ = now + kSweep;
    for (const auto& [key, row] : rows_) {
      if (row.active) unsettled_.insert(key);
    }
  }
  if (pruned_at_ + settings_.prune_interval > now) return;
  pruned_at_ = now;
  std::erase_if(rows_, [&](const auto& entry) {
    const Row& row = entry.second;
    return !row.active && now - row.since > settings_.delay;
  });
}

bool Ken::queue_all_if_due() {
  {
    std::lock_guard lock(mutex_);
    if (all_at_ > clock_.now()) return false;
    all_at_ = MonotonicTime::max();
  }
  try {
    const auto names = store_.run([&](kv::Transaction& tx) { return catalog_.list(tx); });
    std::lock_guard lock(mutex_);
    for (const auto& name : names) put_in_queue(name);
  } catch (const std::exception& error) {
    log::error("Ken cannot list the databases and tries again in a few seconds: {}", error.what());
    std::lock_guard lock(mutex_);
    all_at_ = std::min(all_at_, clock_.now() + kFailurePause);
  }
  return true;
}

bool Ken::remove_one() {
  std::string database;
  bool keep_new = false;
  {
    std::lock_guard lock(mutex_);
    const auto due = std::find_if(removals_.begin(), removals_.end(),
                                  [now = clock_.now()](const auto& entry) { return entry.second.at <= now; });
    if (due == removals_.end()) return false;
    database = due->first;
    keep_new = due->second.keep_new;
    removals_.erase(due);
  }
  try {
    remove_jobs(database, keep_new);
  } catch (const std::exception& error) {
    log::error("Ken cannot remove the jobs of `{}` and tries again in a few seconds: {}", database,
               error.what());
    std::lock_guard lock(mutex_);
    removals_.emplace(database, Removal{clock_.now() + kFailurePause, keep_new});
  }
  return true;
}

bool Ken::settle_one() {
  Key key;
  {
    std::lock_guard lock(mutex_);
    const auto ended = std::find_if(rows_.begin(), rows_.end(),
                                    [](const auto& entry) { return entry.second.watch_ended(); });
    if (ended != rows_.end()) {
      key = ended->first;
      ended->second.watch.reset();
    } else if (!unsettled_.empty()) {
      key = *unsettled_.begin();
    } else {
      return false;
    }
    unsettled_.erase(key);
  }
  try {
    settle(key);
  } catch (const std::exception& error) {
    // The next sweep checks it again.
    log::error("Ken cannot read the index job `{}` and tries again in a few seconds: {}", key.second,
               error.what());
  }
  return true;
}

// Takes the next database that may be scanned out of the queue. It may be queued again from now on, so a
// change during its scan is not missed.
std::optional<std::string> Ken::take_database() {
  std::lock_guard lock(mutex_);
  if (waiting_.empty() || active() >= settings_.channels()) return std::nullopt;
  if (round_left_ == 0) {
    if (next_round_ > clock_.now()) return std::nullopt;
    next_round_ = clock_.now() + options_.gather;
    round_left_ = waiting_.size();
  }
  DIVAN_CHECK(round_left_ > 0, "a database is taken after the end of its round");
  --round_left_;
  std::string database = std::move(waiting_.front());
  waiting_.pop_front();
  const auto erased = queued_.erase(database);
  DIVAN_CHECK(erased == 1, "a database of the queue is missing from the set of names");
  retries_.erase(database);
  waiting_indexes_.erase(database);
  round_left_ = std::min(round_left_, waiting_.size());
  scanning_ = database;
  return database;
}

bool Ken::scan_one() {
  const auto database = take_database();
  if (!database) return false;
  ScanResult result;
  if (!is_ignored(config_, *database)) result = scan_database(*database);
  std::lock_guard lock(mutex_);
  scanning_.reset();
  const MonotonicTime now = clock_.now();
  if (result.gone) removals_.emplace(*database, Removal{now, true});
  if (!result.error.empty()) result.again_at = std::min(result.again_at, now + kFailurePause);
  if (result.again_at != MonotonicTime::max())
    retries_[*database] = {result.again_at, now, std::move(result.wait_reasons), std::move(result.error)};
  if (!result.waiting.empty()) waiting_indexes_[*database] = std::move(result.waiting);
  // What could not be read is unchanged.
  if (result.error.empty()) left_out_.erase(*database);
  for (const auto& index : result.left_out) record_left_out(index, true);
  return true;
}

// Needs mutex_.
void Ken::record_left_out(const IndexName& index, bool any) {
  auto& indexes = left_out_[index.database];
  std::erase_if(indexes,
                [&](const auto& other) { return other.type == index.type && other.job == index.job; });
  if (any) indexes.push_back(index);
  if (indexes.empty()) left_out_.erase(index.database);
}

// Needs mutex_, except in step(), which alone changes rows_.
std::int64_t Ken::active() const {
  return std::count_if(rows_.begin(), rows_.end(), [](const auto& entry) { return entry.second.active; });
}

std::int64_t Ken::active_of(const std::string& database) const {
  return std::count_if(rows_.begin(), rows_.end(), [&](const auto& entry) {
    return entry.second.active && entry.second.index.database == database;
  });
}

Status Ken::status() const {
  std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.now();
  const std::int64_t wall = clock_.wall_ms();
  Status status{.queue = {waiting_.begin(), waiting_.end()}, .scanning = scanning_, .settings = settings_};
  for (const auto& [key, row] : rows_) {
    if (row.active) status.active.push_back({row.index, row.requested_at});
  }
  for (const auto& [database, waiting] : waiting_indexes_)
    status.waiting.insert(status.waiting.end(), waiting.begin(), waiting.end());
  for (const auto& [database, indexes] : left_out_)
    status.left_out.insert(status.left_out.end(), indexes.begin(), indexes.end());
  for (const auto& [database, retry] : retries_)
    status.retries.push_back(
        {database, wall + duration_cast<milliseconds>(retry.at - now).count(), retry.error});
  return status;
}

}  // namespace divan::ken
