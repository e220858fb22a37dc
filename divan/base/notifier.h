// One thread waits, others wake it.
//
// A notifier is a flag with a condition variable. notify() sets the flag; wait_until() returns when it is
// set, and clears it. A notification that comes before the wait is therefore not lost, and several that come
// before it are one: the waiter must then look for itself at what there is to do.
//
//   waiter:                                  anybody:
//     while (notifier.wait_until(deadline))    { change what the waiter looks at }
//       { look at what there is to do }        notifier.notify();
//
// Whoever notifies may outlive the waiter: the callback of a store's watch comes whenever the store ends it.
// So notifiers are shared (`std::shared_ptr`), and a callback holds one instead of its waiter.
#pragma once

#include <condition_variable>
#include <mutex>

#include "divan/base/clock.h"

namespace divan {

/// Thread-safe, with one waiter at a time.
class Notifier {
 public:
  /// Ends the present or the next wait. Does not block: the mutex is held for a few instructions only.
  void notify();

  /// Ends the present wait and all later ones.
  void stop();
  bool stopped() const;

  /// Blocks until notify(), stop() or the deadline, and clears the notification. Returns false once stop()
  /// has been called. A deadline of MonotonicTime::max() never passes.
  bool wait_until(const Clock& clock, MonotonicTime deadline);

  /// Blocks until stop() or the deadline; a notification stays. Returns as wait_until() does.
  bool pause_until(const Clock& clock, MonotonicTime deadline);

  /// Returns true if the next wait_until() would return at once. For tests and loops that are stepped by
  /// hand.
  bool notified() const;
  /// Clears the notification without waiting.
  void clear();

 private:
  mutable std::mutex mutex_;  // protects the members below; nothing else is locked while it is held
  std::condition_variable changed_;
  bool notified_ = false;
  bool stopped_ = false;
};

}  // namespace divan
