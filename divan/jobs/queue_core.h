// Shared by all parts of the job queue: its registry, clock and metrics, and the functions that read types
// and jobs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/jobs/job_metrics.h"
#include "divan/jobs/types.h"
#include "divan/workers/registry.h"

namespace divan::jobs {

/// Thread-safe. The registry, clock and rng must outlive it. The base of Queue.
class QueueCore {
 public:
  QueueCore(workers::Registry& registry, const Clock& clock, Rng& rng)
      : registry_(registry), clock_(clock), rng_(rng) {}
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  /// Sets how many jobs of a worker that has ended are reclaimed in one transaction (worker_jobs.h): 1 to
  /// 250, so that the transaction is never too large. Call during start-up only.
  void set_reclaimed_at_once(std::size_t jobs) { reclaimed_at_once_ = jobs; }
  std::size_t reclaimed_at_once() const { return reclaimed_at_once_; }

  /// Throws no_such_job_type.
  TypeSettings type(kv::Transaction& tx, std::string_view type);
  std::optional<TypeSettings> find_type(kv::Transaction& tx, std::string_view type);
  std::vector<std::string> types(kv::Transaction& tx);
  /// The number of jobs by state. Reads counters, not jobs.
  std::map<State, std::int64_t> counts(kv::Transaction& tx, std::string_view type);

  std::optional<Job> find(kv::Transaction& tx, std::string_view type, std::string_view id,
                          kv::Isolation isolation = kv::Isolation::serializable);
  /// Like find(), but reports a damaged job and returns nullopt. For reading one job among many.
  std::optional<Job> find_or_report(kv::Transaction& tx, std::string_view type, std::string_view id,
                                    kv::Isolation isolation = kv::Isolation::serializable);
  std::string data(kv::Transaction& tx, const Job& job);

  /// The result of the job's last finished run; nullopt if there is none.
  std::optional<std::string> result(kv::Transaction& tx, const Job& job);

  /// A watch on every change of the job's header; null if the store has too many watches
  /// (Transaction::try_watch).
  std::shared_ptr<kv::Watch> watch(kv::Transaction& tx, std::string_view type, std::string_view id);

  /// Prefetches the rows of jobs that will be read or changed.
  static void prefetch(kv::Transaction& tx, std::string_view type, std::span<const std::string_view> ids);

  /// Logs that a row is damaged, once per process and row. Thread-safe.
  void report_damage(std::string_view key, std::string_view what);

  workers::Registry& registry() { return registry_; }
  const Clock& clock() const { return clock_; }
  Rng& rng() { return rng_; }
  /// Metrics and events of changes of jobs.
  JobMetrics& job_metrics() { return job_metrics_; }

 private:
  workers::Registry& registry_;
  const Clock& clock_;
  Rng& rng_;
  JobMetrics job_metrics_;
  std::size_t reclaimed_at_once_ = 250;
  Mutex damaged_mutex_{MutexRank::damaged_jobs, "QueueCore::damaged_mutex_"};  // protects damaged_
  std::set<std::string, std::less<>> damaged_;                                 // keys already reported
};

}  // namespace divan::jobs
