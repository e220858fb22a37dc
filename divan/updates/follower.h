// Brings the events of other nodes onto the bus of this one.
#pragma once

#include <memory>
#include <string>

#include "divan/base/worker_loop.h"
#include "divan/updates/failures.h"
#include "divan/updates/recording.h"

namespace divan::updates {

/// A thread with one watch on the log of events (recording.h). When the log grows, it publishes what other
/// nodes have added as if it had happened here, and on feed_channel() that there are rows in the feed. Events
/// of one database and kind that come close together are one; a local_updated has no id. While nothing
/// happens, nothing is read.
///
/// Thread-safe. Store, bus and clock must outlive it.
class Follower {
 public:
  /// `node` is unlike that of all other processes on the store, and the same when this one starts again: for
  /// each there are rows of its own.
  Follower(kv::Database& store, events::Bus& bus, const Clock& clock, std::string node);
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Starts the thread: what is committed after this call is heard of. Throws kv::Error.
  void start();

  /// Transactions, with all their tries.
  std::uint64_t transactions() const { return transactions_; }
  std::uint64_t failures() const { return failures_.total(); }

 private:
  MonotonicTime step();
  bool look();
  void publish(const std::vector<NodeEvent>& found);

  kv::Database& store_;
  events::Bus& bus_;
  const Clock& clock_;
  const std::string node_;
  kv::Versionstamp place_;            // of the last event that was read
  std::shared_ptr<kv::Watch> watch_;  // engines forget one that nobody holds
  Failures failures_{"Events of other nodes cannot be read"};
  std::atomic<std::uint64_t> transactions_ = 0;
  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::updates
