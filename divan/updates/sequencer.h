// Turns the marks of updates into rows of the feed as they come.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "divan/base/worker_loop.h"
#include "divan/updates/failures.h"
#include "divan/updates/follower.h"
#include "divan/updates/recording.h"

namespace divan::updates {

/// The settings of [global_changes] that concern the sequencer.
struct SequencerOptions {
  // How long updates are gathered at most, under load: one after the other, as CouchDB's listener and writer
  // do; here there is one stage, and their sum counts. They are no wait that every update pays: one that
  // comes after a quiet while is written at once, and then there is a pause (pause_after()). So a hot
  // database alone costs a small transaction now and then, and thousands of them large ones.
  Duration event_delay = std::chrono::milliseconds(25);  // max_event_delay
  Duration write_delay = std::chrono::milliseconds(25);  // max_write_delay
  /// Without it the feed gets no rows, and what is pending is dropped. (update_db)
  bool recording = true;
};

/// So many databases in a batch make the longest pause after it.
inline constexpr std::size_t kFullBatch = 32;
/// A pause is so many times as long as the batch before it took: on a slow disk a busy writer's commits do
/// not wait for those of the feed every other time.
inline constexpr int kRestPerWork = 19;

/// The pause after a batch of so many databases, which took so long: what these two ask for, but at most
/// event_delay + write_delay.
Duration pause_after(std::size_t marks, Duration took, const SequencerOptions& options);

/// What a sequencer has done since its start, and has to do.
struct SequencerStats {
  std::uint64_t rows = 0;  // of the feed: written by it, and by creations and deletions of this process
  std::uint64_t transactions = 0;  // of the store: the sequencer's and the follower's, with all their tries
  std::uint64_t conflicts = 0;     // of the sequencer's transactions: so many had to be tried again
  std::uint64_t failures = 0;      // of its thread and the follower's, tried again after kRetryDelay
  std::uint64_t unseen = 0;        // commits that left a mark since it looked last
  std::uint64_t pending = 0;       // marks that it has found, and whose rows are not committed
};

/// One a process; any number of processes may do the same on one store. Thread-safe. Store, catalog and clock
/// must outlive it.
class Sequencer {
 public:
  /// Registers the catalog's hook: from here on changes are recorded. `node` is empty if the store is this
  /// process's alone, else its name (follower.h).
  Sequencer(kv::Database& store, docs::Catalog& catalog, const Clock& clock, SequencerOptions options = {},
            std::string node = {});
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  /// Starts the thread, which begins with the marks that an earlier process left; and the follower, if the
  /// store is shared. Throws kv::Error.
  void start();

  /// Changes the options; what waits for the old delays does not wait any more.
  void configure(const SequencerOptions& options);

  /// Turns all marks that there are into rows (or drops them, without recording); answers how many there
  /// were. Throws kv::Error: then marks that are not rows yet are there for the next time.
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
  std::atomic<std::uint64_t> unseen_ = 1;  // at the start there may be marks
  std::atomic<std::uint64_t> pending_ = 0, rows_ = 0, transactions_ = 0, conflicts_ = 0;
  Failures failures_{"The updates feed cannot be written"};

  std::mutex mutex_;  // protects the two members below
  SequencerOptions options_;
  MonotonicTime next_step_ = MonotonicTime::min();  // when the pause after the last step ends

  std::optional<Follower> follower_;
  WorkerLoop loop_;  // calls step_if_due()
};

}  // namespace divan::updates
