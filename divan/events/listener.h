// Someone who acts on what happens to databases, on a thread of its own: what couch_event_listener is in
// CouchDB.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/clock.h"
#include "divan/events/database_events.h"

namespace divan::events {

/// Which databases a listener wants to hear of. One that names a database and wants all, too, gets two
/// messages for each event of that database.
struct Databases {
  bool all = false;
  std::vector<std::string> names = {};
};

/// What a listener does. All run on its thread, one at a time; what they throw is logged, and the listener
/// goes on. Those that are not set do nothing.
struct ListenerCallbacks {
  /// Something happened to a database.
  std::function<void(const Event& event)> event = {};
  /// The listener was so slow that `missed` events are gone: look at the databases themselves.
  std::function<void(std::uint64_t missed)> lagged = {};
  /// Nothing happened for `idle_after`; again each time that as much time has passed.
  std::function<void()> idle = {};
  Duration idle_after = Duration::max();
  /// The listener's end: the last call, made while it is still registered.
  std::function<void()> terminate = {};
};

/// A registered set of databases and the thread that handles their events, in order for each database. It
/// ends with this object, so that a parent ends its listener by owning it. Thread-safe, but must not be
/// destroyed by its own callbacks. Bus and clock must outlive it.
class Listener {
 public:
  /// Starts the thread. Nothing is registered yet.
  Listener(Bus& bus, const Clock& clock, ListenerCallbacks callbacks);

  /// Lets a callback that runs come to its end, drops the events that wait, calls `terminate`, and only then
  /// unregisters.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Asks for the events of these databases instead of those asked for before. Events of a database that is
  /// in both sets are not lost. After the return no event of a database that is not in the set any more comes
  /// to be handled; the one in hand may still be.
  void listen(const Databases& databases);

  /// Asks for nothing any more; the listener may listen() again. Throws not_registered (404) if it does not
  /// listen.
  void unregister();

 private:
  struct Source {
    Subscription subscription;
    bool ready = true;  // whether it stands in ready_; at first it does, since an event may have come already
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

  std::mutex registering_;  // one listen() or unregister() at a time; taken before mutex_
  bool registered_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Source> sources_;  // by channel
  std::deque<std::string> ready_;          // channels that may have something, each once
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace divan::events
