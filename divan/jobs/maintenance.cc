#include "divan/jobs/maintenance.h"

#include <set>

#include "divan/base/log.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/riders.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// How often a type is looked at: this part of its timeout, within bounds.
constexpr int kLooksPerTimeout = 4;
constexpr Duration kMaxLookInterval = std::chrono::seconds(5);
constexpr Duration kMaxPruneInterval = std::chrono::minutes(1);
// The oldest entries of activity of a type that are looked at in one step.
constexpr std::size_t kMaxLookedAt = 10'000;
constexpr std::size_t kPrunedPerTransaction = 500;

}  // namespace

void Maintenance::stop() {
  {
    std::lock_guard lock(wake_->mutex);
    wake_->stopping = true;
  }
  wake_->changed.notify_all();
}

Maintenance::~Maintenance() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Maintenance::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "jobs");
}

void Maintenance::run() {
  std::unique_lock lock(wake_->mutex);
  while (!wake_->stopping) {
    wake_->woken = false;
    lock.unlock();
    const MonotonicTime next = step();
    lock.lock();
    clock_.wait_until(lock, wake_->changed, next, [this] { return wake_->stopping || wake_->woken; });
  }
}

// The settings of all types are read again only when one has changed. That also wakes the thread: a new
// type's timeout may be shorter than it would sleep. Without a watch the next step sees it, and asks for a
// watch again.
void Maintenance::read_types() {
  const bool watched = types_watch_ && !types_watch_->fired() && !types_watch_->cancelled();
  std::string version;
  std::optional<decltype(types_)> types;
  std::shared_ptr<kv::Watch> watch;
  store_.run([&](kv::Transaction& tx) {
    types.reset();
    watch.reset();
    version = tx.get(types_key(), kv::Isolation::snapshot).value_or("");
    if (version == types_version_ && watched) return;
    if (version != types_version_) types = settings_of_types(tx);
    try {
      watch = tx.watch(types_key());
    } catch (const kv::Error& error) {
      if (error.code() != kv::ErrorCode::too_many_watches) throw;
    }
  });
  if (types) {
    types_ = *std::move(types);
    types_version_ = std::move(version);
    next_prune_ = {};
  }
  if (!watch) return;
  watch->on_end([wake = wake_, weak = std::weak_ptr(watch)] {
    // A store that cancels watches is not asked for the next one at once.
    if (const auto ended = weak.lock(); !ended || !ended->fired()) return;
    std::lock_guard lock(wake->mutex);
    wake->woken = true;
    wake->changed.notify_all();
  });
  types_watch_ = std::move(watch);
}

std::map<std::string, TypeSettings, std::less<>> Maintenance::settings_of_types(kv::Transaction& tx) {
  decltype(types_) types;
  for (const auto& type : queue_.types(tx)) {
    if (auto settings = queue_.find_type(tx, type)) types.emplace(type, *std::move(settings));
  }
  return types;
}

template <class Fn>
void Maintenance::for_each_type_with(std::string_view kind, Fn&& fn) {
  std::vector<std::string> types;
  try {
    types = store_.run([&](kv::Transaction& tx) { return types_with(tx, kind); });
  } catch (const Error& error) { log::error("The job types could not be looked through: {}", error.what()); }
  for (const auto& type : types) {
    const auto known = types_.find(type);
    if (known == types_.end()) continue;
    try {
      fn(type, known->second);
    } catch (const Error& error) {
      log::error("Jobs of type {} could not be looked after: {}", type, error.what());
    }
  }
}

MonotonicTime Maintenance::step() {
  std::lock_guard step(stepping_);
  const MonotonicTime started = clock_.now();
  try {
    read_types();
  } catch (const Error& error) { log::error("The job types could not be read: {}", error.what()); }
  try {
    take_back_left(queue_, store_);
  } catch (const Error& error) {
    log::error("Jobs of ended workers could not be taken back: {}", error.what());
  }
  Duration interval = kMaxLookInterval;
  Duration prune_interval = kMaxPruneInterval;
  for (const auto& [type, settings] : types_) {
    interval = std::min(interval, settings.timeout / kLooksPerTimeout);
    prune_interval = std::min(prune_interval, settings.retention / kLooksPerTimeout);
  }
  std::set<std::string> looked_at;
  for_each_type_with("act", [&](const std::string& type, const TypeSettings& settings) {
    looked_at.insert(type);
    interval = std::min(interval, take_back_silent(type, settings.timeout));
  });
  std::erase_if(seen_, [&](const auto& entry) { return !looked_at.contains(entry.first); });
  const MonotonicTime next = started + interval;
  // What is left when jobs are to be looked for again is pruned after that.
  if (started >= next_prune_ && prune(next)) next_prune_ = started + prune_interval;
  interval_ = interval;
  return next;
}

bool Maintenance::prune(MonotonicTime until) {
  bool done = true;
  for_each_type_with("fin", [&](const std::string& type, const TypeSettings&) {
    std::optional<std::string> next = "";
    while (done && next) {
      next = store_.run(
          [&](kv::Transaction& tx) { return queue_.prune(tx, type, kPrunedPerTransaction, *next).next; });
      if (next) done = clock_.now() < until && !is_stopping();
    }
  });
  return done;
}

bool Maintenance::is_stopping() const {
  std::lock_guard lock(wake_->mutex);
  return wake_->stopping;
}

// A job is silent for the time for which this thread waited on purpose between two readings that show the
// same activity. Time in which the process was paused, or waited for the store, does not count: its worker
// may have been paused too, or kept from the store, and gets its chance first.
Duration Maintenance::take_back_silent(const std::string& type, Duration timeout) {
  const JobKey prefix = JobKey("act").string(type).integer(kShard);
  SeenJobs& before = seen_[type];
  SeenJobs present;
  std::vector<std::string> silent;
  const Duration waited = std::min(clock_.now() - before.read_at, interval_);
  store_.run([&](kv::Transaction& tx) {
    present.jobs.clear();
    tx.scan(prefix.range(), {.limit = kMaxLookedAt, .isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view) {
              kv::tuple::Reader reader(key.substr(prefix.key().size()));
              const auto stamp = reader.take_versionstamp();
              auto id = reader.take_string();
              if (!stamp || !id) {
                queue_.report_damage(key, "An entry of the running jobs is damaged and left out.");
                return true;
              }
              const auto known = before.jobs.find(*id);
              const bool moved = known == before.jobs.end() || known->second.activity != *stamp;
              const Duration silence = moved ? Duration() : known->second.silence + waited;
              present.jobs.emplace(*std::move(id), Seen{*stamp, silence});
              return true;
            });
  });
  present.read_at = clock_.now();
  Duration left = timeout;
  for (const auto& [id, seen] : present.jobs) {
    if (seen.silence >= timeout) {
      silent.push_back(id);
    } else {
      left = std::min(left, timeout - seen.silence);
    }
  }
  for (const auto& id : silent) {
    if (is_stopping()) break;
    const bool taken = store_.run([&](kv::Transaction& tx) {
      auto job = queue_.find_whole(tx, type, id);
      if (!job || job->state != State::running || job->activity != present.jobs.at(id).activity) return false;
      take_back(queue_, tx, *job, Outcome::lost);
      return true;
    });
    if (taken) log::warning("Job {}/{} was silent for its timeout and is pending again.", type, id);
  }
  before = std::move(present);
  return left;
}

}  // namespace divan::jobs
