// Waiting for several jobs to reach a state.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "divan/jobs/queue.h"

namespace divan::jobs {

/// The most jobs of one wait.
inline constexpr std::size_t kMaxAwaitedJobs = 1000;

/// A wait for a set of jobs. Not thread-safe. The queue and store must outlive it.
class Wait {
 public:
  struct Awaited {
    std::string type;
    std::string id;
    bool reached = false;      // it is in one of the states, or does not exist
    std::optional<Job> job{};  // as last read; nullopt if it does not exist
  };

  /// The states in which a job has ended.
  static const std::set<State>& ended();

  /// Waits for jobs, given by type and id, to be in one of `states`. Throws bad_request if there are no jobs,
  /// more than kMaxAwaitedJobs, or no states.
  Wait(Queue& queue, kv::Database& store, const std::vector<std::pair<std::string, std::string>>& jobs,
       std::set<State> states = ended());

  /// Reads the jobs that may have changed; returns how many have reached one of the states. `wake` is called
  /// on any thread, possibly before read() returns, when another call may find more. A job that has reached a
  /// state is not read again. Throws errors of the store.
  std::size_t read(const std::function<void()>& wake);

  /// Returns true if the store had too few watches: read() must then be called at intervals.
  bool must_poll() const { return must_poll_; }

  /// The jobs, in the order of the constructor's argument.
  const std::vector<Awaited>& jobs() const { return jobs_; }

  /// Blocks until `count` of the jobs (at most all) have reached a state or the deadline has passed; returns
  /// how many have.
  std::size_t wait(const Clock& clock, std::size_t count, MonotonicTime deadline);

 private:
  void read_some(std::span<const std::size_t> which);

  Queue& queue_;
  kv::Database& store_;
  const std::set<State> states_;
  std::vector<Awaited> jobs_;
  std::vector<std::shared_ptr<kv::Watch>> watches_;  // of each job
  bool must_poll_ = false;
};

}  // namespace divan::jobs
