// Publishes the events of other nodes on the bus of this one.
#pragma once

#include <memory>
#include <string>

#include "divan/base/worker_loop.h"
#include "divan/updates/failures.h"
#include "divan/updates/recording.h"

namespace divan::updates {

/// A thread with one watch on the log of events (recording.h). When the log grows, it publishes the events of
/// other nodes as if they had happened here, and publishes on feed_channel() that the feed has new rows.
/// Events of the same database and kind in a short time become one; a local_updated event has no id. Nothing
/// is read while nothing changes.
///
/// Thread-safe. The store, bus and clock must outlive it.
class Follower {
 public:
  /// `node` is unique among the processes on the store, and the same after a restart: each node has rows of
  /// its own in the log.
  Follower(kv::Database& store, events::Bus& bus, const Clock& clock, std::string node);
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Starts the thread, which publishes the events that are committed after this call. Throws kv::Error.
  void start();

  // What start() does, for callers that call step() themselves.

  /// Begins with the events that are committed after this call. Throws kv::Error.
  void begin();
  /// Publishes the new events. Returns when the next step is due if the notifier is not notified before.
  MonotonicTime step();
  /// Notified when the watch on the log has ended.
  Notifier& notifier() { return *loop_.notifier(); }

  /// How many transactions were made, including retries.
  std::uint64_t transactions() const { return transactions_; }
  std::uint64_t failures() const { return failures_.total(); }

 private:
  bool poll();
  void publish(const std::vector<NodeEvent>& found);

  kv::Database& store_;
  events::Bus& bus_;
  const Clock& clock_;
  const std::string node_;
  kv::Versionstamp position_;         // of the last event that was read
  std::shared_ptr<kv::Watch> watch_;  // an engine drops a watch without an owner
  Failures failures_{"Events of other nodes cannot be read"};
  std::atomic<std::uint64_t> transactions_ = 0;
  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::updates
