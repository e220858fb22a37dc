// Handles the events of databases on a thread of its own, as CouchDB's couch_event_listener does.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/notifier.h"
#include "divan/events/database_events.h"

namespace divan::events {

/// The databases that a listener subscribes to. If it names a database and sets `all`, too, it gets two
/// messages for each event of that database.
struct Databases {
  bool all = false;
  std::vector<std::string> names = {};
};

/// A listener's callbacks. All run on its thread, one at a time. Exceptions are logged, and the listener
/// continues. Each may be empty.
struct ListenerCallbacks {
  /// Called for each event.
  std::function<void(const Event& event)> event = {};
  /// Called when `missed` events were dropped since the listener was slow: read the databases themselves.
  std::function<void(std::uint64_t missed)> lagged = {};
  /// Called when there was no event for `idle_after`, and again after each further `idle_after`.
  std::function<void()> idle = {};
  Duration idle_after = Duration::max();
  /// After it has handled all events, the thread rests for so long, so that a stream of events does not wake
  /// it for each of them.
  Duration rest{0};
  /// Called last, when the listener ends; it is still registered then.
  std::function<void()> terminate = {};
};

/// A registered set of databases and the thread that handles their events, in order for each database. The
/// thread ends with this object. Thread-safe, but must not be destroyed by its own callbacks. Bus and clock
/// must outlive it.
class Listener {
 public:
  /// Starts the thread. The listener is not registered yet.
  Listener(Bus& bus, const Clock& clock, ListenerCallbacks callbacks);

  /// Waits for a running callback, drops the pending events, calls `terminate`, and then unregisters.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Replaces the set of databases. Events of a database that is in both sets are not lost. After the return
  /// no event of a database that was removed from the set is handled, except one whose callback is running.
  void listen(const Databases& databases);

  /// Removes the registration; listen() may be called again. Throws not_registered (404) if the listener is
  /// not registered.
  void unregister();

 private:
  struct Source {
    Subscription subscription;
    bool ready = true;  // whether it is in ready_; initially true, since an event may have arrived already
  };

  void replace_sources(std::set<std::string> channels);
  void became_ready(const std::string& channel);
  std::optional<Message> next();
  MonotonicTime next_idle() const;
  void run();
  void handle(const Message& message);
  template <class Callback, class... Args>
  void call(const Callback& callback, const Args&... args);

  Bus& bus_;
  const Clock& clock_;
  const ListenerCallbacks callbacks_;

  // One listen() or unregister() at a time; protects registered_.
  Mutex registering_{MutexRank::listener_registration, "Listener::registering_"};
  bool registered_ = false;

  Mutex mutex_{MutexRank::listener, "Listener::mutex_"};  // protects the two members below
  std::map<std::string, Source> sources_;                 // by channel
  std::deque<std::string> ready_;                         // channels that may have messages, each once

  Notifier notifier_;  // notified when a channel becomes ready
  std::thread thread_;
};

}  // namespace divan::events
