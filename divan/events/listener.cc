#include "divan/events/listener.h"

#include <pthread.h>

#include <exception>
#include <utility>

#include "divan/base/error.h"
#include "divan/base/log.h"

namespace divan::events {

Listener::Listener(Bus& bus, const Clock& clock, ListenerCallbacks callbacks)
    : bus_(bus), clock_(clock), callbacks_(std::move(callbacks)), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "listener");
}

Listener::~Listener() {
  notifier_.stop();
  thread_.join();
  replace_sources({});
}

void Listener::listen(const Databases& databases) {
  std::set<std::string> channels;
  if (databases.all) channels.emplace(all_databases_channel());
  for (const auto& name : databases.names) channels.insert(database_channel(name));
  std::lock_guard lock(registering_);
  registered_ = true;
  replace_sources(std::move(channels));
}

void Listener::unregister() {
  std::lock_guard lock(registering_);
  if (!registered_) throw Error(404, "not_registered", "The listener is not registered.");
  registered_ = false;
  replace_sources({});
}

void Listener::replace_sources(std::set<std::string> channels) {
  // Ending a subscription waits for its callback, which locks mutex_: so they end after it is released.
  std::vector<Subscription> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto it = sources_.begin(); it != sources_.end();) {
      const bool stays = channels.erase(it->first) > 0;
      if (!stays) ended.push_back(std::move(it->second.subscription));
      it = stays ? std::next(it) : sources_.erase(it);
    }
    std::erase_if(ready_, [this](const auto& channel) { return !sources_.contains(channel); });
  }
  ended.clear();
  for (const auto& channel : channels) {
    SubscribeOptions options;
    options.notify = [this, channel] { became_ready(channel); };
    auto subscription = bus_.subscribe(channel, std::move(options));
    std::lock_guard lock(mutex_);
    sources_.emplace(channel, Source{std::move(subscription)});
    ready_.push_back(channel);
  }
  notifier_.notify();
}

void Listener::became_ready(const std::string& channel) {
  {
    std::lock_guard lock(mutex_);
    const auto it = sources_.find(channel);
    if (it == sources_.end() || it->second.ready) return;
    it->second.ready = true;
    ready_.push_back(channel);
  }
  notifier_.notify();
}

/// The next message of the sources, round-robin.
std::optional<Message> Listener::next() {
  std::lock_guard lock(mutex_);
  while (!ready_.empty()) {
    auto channel = std::move(ready_.front());
    ready_.pop_front();
    auto& source = sources_.at(channel);
    if (auto message = source.subscription.try_next()) {
      ready_.push_back(std::move(channel));
      return message;
    }
    source.ready = false;
  }
  return std::nullopt;
}

MonotonicTime Listener::next_idle() const {
  const bool never = !callbacks_.idle || callbacks_.idle_after == Duration::max();
  return never ? MonotonicTime::max() : clock_.now() + callbacks_.idle_after;
}

void Listener::run() {
  auto idle_at = next_idle();
  bool is_rested = true;
  while (!notifier_.stopped()) {
    if (const auto message = next()) {
      handle(*message);
      is_rested = callbacks_.rest == Duration(0);
    } else if (!is_rested) {
      is_rested = true;
      notifier_.pause_until(clock_, clock_.now() + callbacks_.rest);
      continue;
    } else if (clock_.now() >= idle_at) {
      call(callbacks_.idle);
    } else {
      notifier_.wait_until(clock_, idle_at);
      continue;
    }
    idle_at = next_idle();
  }
  call(callbacks_.terminate);
}

void Listener::handle(const Message& message) {
  if (message.event == nullptr) {
    call(callbacks_.lagged, message.lagged);
  } else {
    call(callbacks_.event, *message.event);
  }
}

template <class Callback, class... Args>
void Listener::call(const Callback& callback, const Args&... args) {
  if (!callback) return;
  try {
    callback(args...);
  } catch (const std::exception& e) {
    log::error("A listener's callback failed: {}", e.what());
  } catch (...) { log::error("A listener's callback failed"); }
}

}  // namespace divan::events
