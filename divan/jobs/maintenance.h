// What keeps the queue honest: jobs of silent workers are reclaimed, and ended jobs are pruned.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "divan/base/worker_loop.h"
#include "divan/jobs/queue.h"

namespace divan::jobs {

/// Watches the attempts that have a deadline, which are ended when that has passed by the wall clock, and the
/// jobs that run without a worker. Such a job stands in its type's list of activity at the place of its last
/// sign of life; one that has not moved for its type's timeout, as observed by this process, is
/// pending again. (Jobs on a worker go with the worker: see workers::Monitor.) One a process; any number of
/// processes may do the same. Thread-safe.
class Maintenance {
 public:
  Maintenance(Queue& queue, kv::Database& store, const Clock& clock)
      : queue_(queue), store_(store), clock_(clock), loop_(clock, "jobs", [this] { return step(); }) {}
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  /// Starts the thread that calls step() when there is something to do.
  void start() { loop_.start(); }

  /// Ends the thread, and a step that is under way, as soon as its present transaction has ended. Does not
  /// wait for it; the destructor does.
  void stop() { loop_.stop(); }

  /// One look at the types that have such jobs, or jobs that have ended; the others cost nothing. Answers
  /// when to look again. An error of one type is logged and keeps no other from being looked after.
  MonotonicTime step();

 private:
  // An entry of activity, and for how long it has been observed to stay.
  struct Seen {
    kv::Versionstamp activity;
    Duration silence{};
    Duration timeout{};
  };
  struct SeenJobs {
    MonotonicTime read_at{};
    std::map<std::string, Seen, std::less<>> jobs;  // by id
  };

  void read_types();
  std::map<std::string, TypeSettings, std::less<>> settings_of_types(kv::Transaction& tx);
  // Returns after what time the first of the others will be silent for too long.
  Duration reclaim_silent(const std::string& type, Duration timeout);
  std::optional<Duration> activity_timeout(std::string_view key, std::string_view value);
  // Returns how long it is until the next deadline.
  Duration end_overdue_attempts(const std::string& type);
  // Moves what an earlier version has left to where this one reads it.
  void upgrade(const std::vector<std::string>& types, MonotonicTime until);
  // Until it is time to look for silent jobs again. True if nothing is left to be pruned.
  bool prune(MonotonicTime until);
  // Calls `some(tx, begin)`, which returns where the next call begins, until all is done (then true), it is
  // time for something else, or this is to stop.
  template <class Some>
  bool go_on(MonotonicTime until, const Some& some);
  bool is_stopping() const { return loop_.stopped(); }
  // The types that have entries of a kind, of several kinds.
  using TypesByKind = std::map<std::string, std::vector<std::string>, std::less<>>;
  TypesByKind types_by_kind(std::initializer_list<std::string_view> kinds);
  // Calls `fn(type, settings)` for each of the types.
  template <class Fn>
  void for_each_type(const std::vector<std::string>& types, Fn&& fn);

  Queue& queue_;
  kv::Database& store_;
  const Clock& clock_;
  std::mutex stepping_;
  std::optional<std::string> types_version_;
  std::map<std::string, TypeSettings, std::less<>> types_;
  MonotonicTime next_prune_{};
  Duration interval_{};  // from the last step to the next
  std::map<std::string, SeenJobs, std::less<>> seen_;

  std::shared_ptr<kv::Watch> types_watch_;
  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::jobs
