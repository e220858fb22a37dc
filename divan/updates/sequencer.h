// Turns the marks of updates into rows of the feed as they come.
#pragma once

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

  /// Turns all marks that there are into rows. Errors of the store are logged; the marks stay for the next
  /// time.
  void step();

 private:
  void wake();
  void run();

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  const SequencerOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace divan::updates
