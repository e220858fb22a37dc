// What happens to jobs, for those who look on: metrics by type, and an event for each change of a state.
//
// A transaction's changes are told after its commit, all at once, by the process that made it. Those of other
// processes on a shared store are told there.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "divan/base/metrics.h"
#include "divan/events/bus.h"
#include "divan/jobs/types.h"
#include "divan/kv/store.h"

namespace divan::jobs {

/// The channel of changes, ("_jobs"): Event::kind is the state, or "removed", Event::payload the row that
/// /_jobs/_events shows.
std::string_view jobs_channel();

/// Thread-safe, but for what is said to be for start-up.
class Observer {
 public:
  // For start-up. Without them nothing is told. They must outlive this.
  void measure(Metrics& metrics);
  void publish(events::Bus& bus);

  // To be called within the transaction, once the job is what it is to be. Times are in milliseconds since
  // 1970.

  /// It was added, or asked for again, or cancelled before it ran.
  void changed(kv::Transaction& tx, const Job& job, std::int64_t now);
  /// An attempt has begun, of a job that was due at `due_at`.
  void started(kv::Transaction& tx, const Job& job, std::int64_t due_at);
  /// The attempt that `before` ran has ended, and the job is `job` now.
  void ended(kv::Transaction& tx, const Job& before, const Job& job, Outcome outcome, std::int64_t now);
  void removed(kv::Transaction& tx, const Job& job, std::int64_t now);

 private:
  struct Change;
  struct Batch;
  struct TypeMetrics;

  bool is_watched() const { return metrics_ != nullptr || publisher_; }
  bool is_listened_to() const;
  Change change_of(const Job& job, std::string_view state, std::int64_t now) const;
  void note(kv::Transaction& tx, Change change);
  void tell(const Batch& batch);
  void count(const Change& change);
  TypeMetrics& metrics_of(const std::string& type);

  Metrics* metrics_ = nullptr;
  std::optional<events::Publisher> publisher_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<TypeMetrics>> types_;
};

}  // namespace divan::jobs
