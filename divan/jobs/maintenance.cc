#include "divan/jobs/maintenance.h"

#include <fmt/core.h>

#include <set>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/ended.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/worker_jobs.h"

namespace divan::jobs {
namespace {

// Polls of a type per timeout, and the longest interval between polls.
constexpr int kPollsPerTimeout = 4;
constexpr Duration kMaxPollInterval = std::chrono::seconds(5);
constexpr Duration kMaxPruneInterval = std::chrono::minutes(1);
// The most entries of activity of a type that are observed, the oldest first: of jobs with the type's
// timeout, and of jobs with one of their own.
constexpr std::size_t kMaxObserved = 10'000;
// The most entries that are read for them.
constexpr std::size_t kMaxActivityRead = 100'000;
// The most attempts of a type that are ended at their deadline in one step.
constexpr std::size_t kMaxOverdue = 1000;
constexpr std::size_t kUpgradedPerTransaction = 250;
constexpr std::size_t kPrunedPerTransaction = 500;

}  // namespace

Maintenance::TypesByKind Maintenance::types_by_kind(std::initializer_list<std::string_view> kinds) {
  try {
    return store_.run([&](kv::Transaction& tx) {
      TypesByKind types;
      for (const auto kind : kinds) types[std::string(kind)] = types_with(tx, kind);
      return types;
    });
  } catch (const std::exception& error) {
    log::error("The job types cannot be scanned: {}", error.what());
    return {};
  }
}

template <class Fn>
void Maintenance::for_each_type(const std::vector<std::string>& types, Fn&& fn) {
  for (const auto& type : types) {
    const auto known = types_.types().find(type);
    if (known == types_.types().end()) continue;
    try {
      fn(type, known->second);
    } catch (const std::exception& error) {
      log::error("Jobs of type {} cannot be maintained: {}", type, error.what());
    }
  }
}

MonotonicTime Maintenance::step() {
  std::lock_guard step(stepping_);
  const MonotonicTime started = clock_.now();
  try {
    // A watch wakes the thread, since the timeout of a new type may be shorter than the thread's wait.
    if (types_.refresh(loop_.notifier())) next_prune_ = {};
  } catch (const std::exception& error) { log::error("The job types cannot be read: {}", error.what()); }
  try {
    reclaim_left(queue_, store_);
  } catch (const std::exception& error) {
    log::error("Jobs of ended workers cannot be reclaimed: {}", error.what());
  }
  Duration interval = kMaxPollInterval;
  Duration prune_interval = kMaxPruneInterval;
  for (const auto& [type, settings] : types_.types()) {
    interval = std::min(interval, settings.timeout / kPollsPerTimeout);
    if (settings.max_runtime) interval = std::min(interval, *settings.max_runtime / kPollsPerTimeout);
    for (const State state : kEndedStates)
      prune_interval = std::min(prune_interval, settings.retention_of(state) / kPollsPerTimeout);
  }
  auto types = types_by_kind({"act", "deadline", "fin"});
  std::set<std::string> observed;
  for_each_type(types["act"], [&](const std::string& type, const TypeSettings& settings) {
    observed.insert(type);
    interval = std::min(interval, reclaim_silent(type, settings.timeout));
  });
  std::erase_if(observed_, [&](const auto& entry) { return !observed.contains(entry.first); });
  for_each_type(types["deadline"], [&](const std::string& type, const TypeSettings&) {
    interval = std::min(interval, end_overdue_attempts(type));
  });
  const MonotonicTime next = started + interval;
  upgrade(types["fin"], next);
  // Jobs that cannot be pruned before the next step is due are pruned in later steps.
  if (started >= next_prune_ && prune(next)) next_prune_ = started + prune_interval;
  interval_ = interval;
  return next;
}

template <class Batch>
bool Maintenance::run_batches(MonotonicTime until, const Batch& batch) {
  std::optional<std::string> next = "";
  while (next) {
    next = store_.run([&](kv::Transaction& tx) { return batch(tx, *next).next; });
    if (next && (clock_.now() >= until || is_stopping())) return false;
  }
  return true;
}

bool Maintenance::prune(MonotonicTime until) {
  bool done = true;
  for_each_type(types_by_kind({"end"})["end"], [&](const std::string& type, const TypeSettings&) {
    done = done && run_batches(until, [&](kv::Transaction& tx, std::string_view begin) {
             return jobs::prune(queue_, tx, type, kPrunedPerTransaction, begin);
           });
  });
  return done;
}

void Maintenance::upgrade(const std::vector<std::string>& types, MonotonicTime until) {
  for_each_type(types, [&](const std::string& type, const TypeSettings&) {
    run_batches(until, [&](kv::Transaction& tx, std::string_view begin) {
      return upgrade_ended(queue_, tx, type, kUpgradedPerTransaction, begin);
    });
  });
}

Duration Maintenance::end_overdue_attempts(const std::string& type) {
  const JobKey prefix = JobKey("deadline").string(type).integer(kShard);
  std::vector<std::string> overdue;
  Duration next = Duration::max();
  store_.run([&](kv::Transaction& tx) {
    overdue.clear();
    next = Duration::max();
    const std::int64_t now = clock_.wall_ms();
    tx.scan(prefix.range(), {.limit = kMaxOverdue, .isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view) {
              kv::tuple::Reader reader(key.substr(prefix.key().size()));
              const auto deadline = reader.take_int();
              auto id = deadline ? reader.take_string() : std::nullopt;
              if (!id) {
                queue_.report_damage(key, kDamagedRunningEntry);
                return true;
              }
              if (*deadline > now) {
                // Cut before it becomes nanoseconds: a damaged entry may be due in millions of years.
                constexpr std::int64_t kLongest = kMaxPollInterval / std::chrono::milliseconds(1);
                next = std::chrono::milliseconds(std::min(*deadline, now + kLongest) - now);
                return false;
              }
              overdue.push_back(*std::move(id));
              return true;
            });
  });
  for (const auto& id : overdue) {
    if (is_stopping()) break;
    const bool ended = store_.run([&](kv::Transaction& tx) {
      auto job = queue_.find_or_report(tx, type, id);
      if (!job || job->state != State::running || job->deadline == 0 || job->deadline > clock_.wall_ms())
        return false;
      end_overdue(queue_, tx, *job);
      return true;
    });
    if (ended) log::warning("An attempt of job {}/{} exceeded its deadline and was ended.", type, id);
  }
  return next;
}

// Silence is the time for which this thread waited on purpose between two reads of the same activity. Time in
// which the process was paused or waited for the store does not count: the job's process may have been paused
// too, or have been unable to reach the store, and gets the rest of its timeout.
Duration Maintenance::reclaim_silent(const std::string& type, Duration timeout) {
  const JobKey prefix = JobKey("act").string(type).integer(kShard);
  ObservedJobs& before = observed_[type];
  ObservedJobs present;
  std::vector<std::string> silent;
  const Duration waited = std::min(clock_.now() - before.read_at, interval_);
  DIVAN_CHECK(waited >= Duration(0), "jobs were silent for {} ns", waited.count());
  store_.run([&](kv::Transaction& tx) {
    present.jobs.clear();
    // The oldest ones with the type's timeout, and the oldest ones with one of their own.
    std::size_t plain = 0, own = 0;
    tx.scan(
        prefix.range(), {.limit = kMaxActivityRead, .isolation = kv::Isolation::snapshot},
        [&](std::string_view key, std::string_view value) {
          kv::tuple::Reader reader(key.substr(prefix.key().size()));
          const auto stamp = reader.take_versionstamp();
          auto id = stamp ? reader.take_string() : std::nullopt;
          if (!id) {
            queue_.report_damage(key, kDamagedRunningEntry);
            return true;
          }
          const auto own_timeout = activity_timeout(key, value);
          std::size_t& count = own_timeout ? own : plain;
          if (count++ >= kMaxObserved) return std::min(plain, own) < kMaxObserved;
          const auto known = before.jobs.find(*id);
          const bool moved = known == before.jobs.end() || known->second.activity != *stamp;
          const Duration silence = moved ? Duration() : known->second.silence + waited;
          present.jobs.emplace(*std::move(id), Observation{*stamp, silence, own_timeout.value_or(timeout)});
          return true;
        });
  });
  present.read_at = clock_.now();
  Duration left = timeout;
  for (const auto& [id, seen] : present.jobs) {
    if (seen.silence >= seen.timeout) {
      silent.push_back(id);
    } else {
      // A timeout of its own may be far shorter than its type's.
      left = std::min({left, seen.timeout - seen.silence, seen.timeout / kPollsPerTimeout});
    }
  }
  for (const auto& id : silent) {
    if (is_stopping()) break;
    const bool taken = store_.run([&](kv::Transaction& tx) {
      auto job = queue_.find_or_report(tx, type, id);
      if (!job || job->state != State::running || job->activity != present.jobs.at(id).activity) return false;
      reclaim(queue_, tx, *job, Outcome::lost);
      return true;
    });
    if (taken) log::warning("Job {}/{} has not reported for its timeout and was reclaimed.", type, id);
  }
  before = std::move(present);
  return left;
}

std::optional<Duration> Maintenance::activity_timeout(std::string_view key, std::string_view value) {
  try {
    return decode_activity_value(value);
  } catch (const Error&) {
    queue_.report_damage(key, "The timeout of a running job is damaged; its type's timeout is used.");
    return std::nullopt;
  }
}

}  // namespace divan::jobs
