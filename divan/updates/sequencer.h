// Turns the marks that updates leave into rows of the feed.
#pragma once

#include <atomic>
#include <optional>

#include "divan/base/worker_loop.h"
#include "divan/updates/failures.h"
#include "divan/updates/follower.h"
#include "divan/updates/recording.h"

namespace divan::updates {

/// The settings of [global_changes] that concern the sequencer.
struct SequencerOptions {
  // Under load, updates are batched for the sum of these two at most: CouchDB has a listener and a writer
  // with a delay each, Divan has one stage. A single update does not wait: it is written at once, and then
  // there is a pause (pause_after()). So one busy database causes a small transaction now and then, and
  // thousands of them cause large ones.
  Duration event_delay = std::chrono::milliseconds(25);  // max_event_delay
  Duration write_delay = std::chrono::milliseconds(25);  // max_write_delay
  /// If false, the feed gets no rows, and pending marks are dropped. (update_db)
  bool recording = true;
};

/// The pause after a batch is longest if the batch has this many databases or more.
inline constexpr std::size_t kFullBatch = 32;
/// A pause is this many times as long as the batch before it took, so that on a slow disk the feed takes a
/// small share of the commits.
inline constexpr int kPausePerWork = 19;

/// Returns the pause after a batch with `marks` databases that took the time `took`: by the two constants
/// above, and at most event_delay + write_delay.
Duration pause_after(std::size_t marks, Duration took, const SequencerOptions& options);

/// What a sequencer has done since its start, and what is pending.
struct SequencerStats {
  std::uint64_t rows = 0;  // of the feed: written by it, and by creations and deletions of this process
  std::uint64_t transactions = 0;  // of the sequencer and the follower, including retries
  std::uint64_t conflicts = 0;     // retries of the sequencer's transactions
  std::uint64_t failures = 0;      // of its thread and the follower's, which retry after kRetryDelay
  std::uint64_t unseen = 0;        // commits that left a mark since the last step began
  std::uint64_t pending = 0;       // marks that were read and whose rows are not committed
};

/// One for each process; any number of processes may run one on the same store. Thread-safe. The store,
/// catalog and clock must outlive it.
class Sequencer {
 public:
  /// Registers a hook of the catalog, so that changes are recorded from now on. `node` is the name of this
  /// process (follower.h), or empty if no other process uses the store.
  Sequencer(kv::Database& store, docs::Catalog& catalog, const Clock& clock, SequencerOptions options = {},
            std::string node = {});
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  /// Starts the thread, which begins with the marks that an earlier process has left, and the follower if the
  /// store is shared. Throws kv::Error.
  void start();

  /// Changes the options, and ends a pause that is under way.
  void configure(const SequencerOptions& options);

  /// Turns all marks into rows, or drops them if recording is off; returns how many there were. Throws
  /// kv::Error; the marks that are not rows yet then stay for the next step.
  std::size_t step();

  SequencerStats stats() const;

 private:
  void record(kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind,
              std::string_view id);
  void publish_feed();
  void notify();
  MonotonicTime step_if_due();
  template <class Fn>
  auto transact(Fn&& fn);

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  const std::string node_;
  std::atomic<bool> recording_;
  std::atomic<std::uint64_t> unseen_ = 1;  // an earlier process may have left marks
  std::atomic<std::uint64_t> pending_ = 0, rows_ = 0, transactions_ = 0, conflicts_ = 0;
  Failures failures_{"The updates feed cannot be written"};

  Mutex mutex_{MutexRank::sequencer, "Sequencer::mutex_"};  // protects the two members below
  SequencerOptions options_;
  MonotonicTime next_step_ = MonotonicTime::min();  // when the pause after the last step ends

  std::optional<Follower> follower_;
  WorkerLoop loop_;  // calls step_if_due()
};

}  // namespace divan::updates
