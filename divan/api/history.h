// What a process has counted in the last hour: /_node/{name}/_history.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "divan/base/clock.h"
#include "divan/base/mutex.h"
#include "divan/base/worker_loop.h"
#include "divan/jobs/job_metrics.h"

namespace divan::api {

/// Samples of counters, kept in memory: the last kSamples, one every kInterval. Thread-safe, except add() and
/// start(). The clock must outlive it.
class History {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(5);
  static constexpr std::size_t kSamples = 720;

  /// `jobs` returns what was counted so far of the attempts of each type.
  History(const Clock& clock, std::function<std::map<std::string, jobs::AttemptCounts>()> jobs);

  enum class Kind {
    counter,  // never decreases; its rate per second is kept
    gauge,
  };
  /// Adds a value, to be called before start(). `value` is called on the thread of the history.
  void add(std::string name, Kind kind, std::function<double()> value);

  /// Starts the thread that takes the samples.
  void start() { loop_.start(); }

  /// Takes a sample. For tests; the thread calls it otherwise.
  void sample();

  /// The last `samples`, the oldest first, as JSON: {"interval", "times", "series", "jobs_of", "jobs"}.
  /// `times` are in seconds since 1970, by the present clock; `series` has an array for each value, `jobs`
  /// one for each number of the attempts of the type, or of all types if it is empty; `jobs_of` is the type
  /// that was counted. docs/administration.md
  std::string json(std::size_t samples, std::string_view type) const;

 private:
  using Counts = std::map<std::string, jobs::AttemptCounts>;
  struct Value {
    std::string name;
    Kind kind;
    std::function<double()> read;
    double before = 0;
  };
  struct Sample {
    MonotonicTime at;
    std::vector<double> values;  // as values_
    // Since the previous sample, of the types that have any, by their numbers.
    std::vector<std::pair<std::size_t, jobs::AttemptCounts>> jobs;
  };

  // The type under which the attempts of `type` are counted; nullptr: it has none so far.
  const std::pair<const std::string, std::size_t>* counted_type(std::string_view type) const;

  const Clock& clock_;
  const std::function<Counts()> jobs_;
  std::vector<Value> values_;
  MonotonicTime sampled_at_;
  Counts jobs_before_;
  mutable Mutex mutex_{MutexRank::collected_counter, "History::mutex_"};  // protects the two members below
  std::map<std::string, std::size_t, std::less<>> types_;                 // the number of each; never removed
  std::deque<Sample> samples_;
  WorkerLoop loop_;
};

}  // namespace divan::api
