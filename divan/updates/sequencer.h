// Turns the marks of updates into rows of the feed as they come.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "divan/updates/feed.h"

namespace divan::updates {

/// The settings of [global_changes] that concern the sequencer.
struct SequencerOptions {
  /// When updates come thick and fast, at most one transaction in this time writes rows; the first update
  /// after a quiet while does not wait for it. (max_event_delay)
  Duration gather = std::chrono::milliseconds(25);
  /// Without it nothing is recorded, and what is pending is dropped. (update_db)
  bool recording = true;
};

/// One a process; any number of processes may do the same on one store. Thread-safe. Store, catalog and clock
/// must outlive it.
class Sequencer {
 public:
  /// Registers the catalog's hook: from here on changes are recorded.
  Sequencer(kv::Database& store, docs::Catalog& catalog, const Clock& clock, SequencerOptions options = {});
  ~Sequencer();
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  /// Starts the thread. It begins with the marks that an earlier process left.
  void start();

  /// Changes the options; what waits for the old delay does not wait any more.
  void configure(const SequencerOptions& options);

  /// Turns all marks that there are into rows. Errors of the store are logged; the marks stay for the next
  /// time.
  void step();

 private:
  void wake();
  void run();

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  std::atomic<bool> recording_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Duration gather_;
  bool woken_ = true;
  bool configured_ = false;  // since the thread began to wait
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace divan::updates
