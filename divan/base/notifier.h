// One thread waits, others wake it.
//
// A notifier is a flag with a condition variable. notify() sets the flag; wait_until() returns when it is
// set, and clears it. So a notification before the wait is not lost, and several before the wait have the
// effect of one: after each wait, the waiter checks all conditions that it waits for.
//
//   waiter:                                         other threads:
//     while (notifier.wait_until(clock, deadline))    change the state
//       check the state                               notifier.notify();
//
// Notifying code can outlive the waiter: the store calls back when a watch ends, at any time. Such a callback
// holds a std::shared_ptr to the notifier, and no reference to the waiter.
#pragma once

#include "divan/base/clock.h"

namespace divan {

/// Thread-safe, with one waiter at a time.
class Notifier {
 public:
  /// Ends the current wait, or the next one. Does not block: the mutex is held for a few instructions only.
  void notify();

  /// Ends the current wait and all later ones.
  void stop();
  bool stopped() const;

  /// Blocks until notify(), stop() or the deadline, and clears the notification. Returns false once stop()
  /// has been called. A deadline of MonotonicTime::max() never passes.
  bool wait_until(const Clock& clock, MonotonicTime deadline);

  /// Blocks until stop() or the deadline, and keeps a notification. Returns false once stop() has been
  /// called.
  bool pause_until(const Clock& clock, MonotonicTime deadline);

  /// Returns true if wait_until() would return at once. For tests, and for loops whose steps are called
  /// directly.
  bool notified() const;
  /// Clears the notification without waiting.
  void clear();

 private:
  mutable Mutex mutex_{MutexRank::notifier, "Notifier::mutex_"};  // protects the members below
  ConditionVariable changed_;
  bool notified_ = false;
  bool pausing_ = false;  // the waiter is in pause_until(), which a notification does not end
  bool stopped_ = false;
};

}  // namespace divan
