// Ken: indexes that build themselves. When a database changes, the jobs that bring its indexes up to date are
// asked for, before anybody queries them.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "divan/events/listener.h"
#include "divan/index/builds.h"

namespace divan::ken {

struct KenOptions {
  /// A database that changes all the time is looked at once in this time; the first change after a quiet
  /// while is acted on at once.
  Duration gather = std::chrono::milliseconds(50);
};

/// Decides what to build; the work itself is done by whoever runs the jobs (index::Builder). Thread-safe. All
/// that it is given must outlive it.
class Ken {
 public:
  Ken(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, const index::Kinds& kinds,
      const Clock& clock, KenOptions options = {});
  ~Ken();
  Ken(const Ken&) = delete;
  Ken& operator=(const Ken&) = delete;

  /// Listens to the databases, looks at all of them once (they may have changed while nobody listened), and
  /// then at those that change. A database waits once, however often it changes.
  void start();

  /// Asks for the builds that a database's indexes need, but for those that wait after a failure; of one that
  /// is gone the jobs are removed. Throws what the store throws.
  void update(const std::string& database);

 private:
  void handle(const events::Event& event);
  void add(const std::string& database);
  void look_at_all();
  bool add_all();
  bool try_update(const std::string& database);
  std::set<std::string> take_batch(MonotonicTime now);
  MonotonicTime next_time() const;
  void run();

  kv::Database& store_;
  docs::Catalog& catalog_;
  jobs::Queue& queue_;
  const index::Kinds& kinds_;
  const Clock& clock_;
  const KenOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> waiting_;
  std::map<std::string, MonotonicTime> again_at_;  // databases that could not be looked at
  MonotonicTime all_at_;                           // when all databases are to be looked at: at the start
  bool stopping_ = false;
  std::optional<events::Listener> listener_;
  std::thread thread_;
};

}  // namespace divan::ken
