#include "divan/workers/subscriptions.h"

#include <fmt/core.h>

#include <utility>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"

namespace divan::workers {
namespace {

bool has_ended(const std::shared_ptr<kv::Watch>& watch) {
  return watch != nullptr && (watch->fired() || watch->cancelled());
}

// Returns true if `next` is a change for a subscriber that knows `known`.
bool is_change(const std::shared_ptr<const Members>& known, const Members& next) {
  if (known == nullptr) return true;
  // The version of a role without workers rises with other roles.
  if (known->workers.empty() && next.workers.empty()) return false;
  return next.version > known->version;
}

}  // namespace

// A role that is followed. The name never changes.
struct Subscriptions::Role {
  std::string name;
  std::shared_ptr<const Members> members;
  std::shared_ptr<kv::Watch> watch;
  MonotonicTime next_read{};
  std::vector<Subscriber*> subscribers;
};

// Only `delivered` changes after subscribe().
struct Subscriptions::Subscriber {
  std::shared_ptr<Role> role;
  Callback callback;
  Reference reference = 0;
  std::shared_ptr<const Members> delivered;
  Notifier notifier;   // of the thread: notified of changes, stopped by the end of the subscription
  std::thread thread;  // of the callback
};

Subscriptions::Subscriptions(kv::Database& store, Registry& registry, const Clock& clock)
    : store_(store), registry_(registry), clock_(clock), loop_(clock, "members", [this] { return step(); }) {
  loop_.start();
}

Subscriptions::Read Subscriptions::read(const std::string& role) {
  Read read;
  store_.run([&](kv::Transaction& tx) {
    read.watch = registry_.watch(tx, role);
    read.members = std::make_shared<const Members>(registry_.members(tx, role));
  });
  return read;
}

// Needs mutex_. Leaves the former watch in `read`, which must end without the mutex: an end calls back.
void Subscriptions::follow(Role& role, Read& read) {
  if (is_change(role.members, *read.members)) {
    role.members = read.members;
    for (Subscriber* const subscriber : role.subscribers) subscriber->notifier.notify();
  }
  std::swap(role.watch, read.watch);
  role.next_read = clock_.now() + kMembersPollInterval;
}

Subscriptions::Subscription Subscriptions::subscribe(std::string_view role, Callback callback) {
  Read present = read(std::string(role));
  const auto watch = present.watch;
  auto subscriber = std::make_shared<Subscriber>();
  {
    std::lock_guard lock(mutex_);
    if (subscriptions_ >= kMaxSubscriptions)
      throw Error(429, "too_many_subscriptions",
                  fmt::format("This process has {} subscriptions to memberships, which is the limit.",
                              kMaxSubscriptions));
    ++subscriptions_;
    auto& followed = roles_[std::string(role)];
    if (followed == nullptr) {
      followed = std::make_shared<Role>();
      followed->name = role;
    }
    followed->subscribers.push_back(subscriber.get());
    follow(*followed, present);
    subscriber->role = followed;
    subscriber->callback = std::move(callback);
    subscriber->reference = ++last_reference_;
  }
  Subscription subscription(*this, subscriber);
  notify_at_end_of(watch);
  if (subscriber->callback) subscriber->thread = std::thread([this, subscriber] { call(*subscriber); });
  loop_.notify();
  return subscription;
}

std::shared_ptr<const Members> Subscriptions::get_workers(std::string_view role) {
  {
    std::lock_guard lock(mutex_);
    if (const auto followed = roles_.find(role); followed != roles_.end()) return followed->second->members;
  }
  return std::make_shared<const Members>(
      store_.run([&](kv::Transaction& tx) { return registry_.members(tx, role); }));
}

// Without the mutex: a watch that has ended calls back at once.
void Subscriptions::notify_at_end_of(const std::shared_ptr<kv::Watch>& watch) {
  if (watch != nullptr) watch->on_end([notifier = loop_.notifier()] { notifier->notify(); });
}

MonotonicTime Subscriptions::step() {
  std::vector<std::shared_ptr<Role>> due;
  MonotonicTime next = MonotonicTime::max();
  {
    std::lock_guard lock(mutex_);
    const MonotonicTime now = clock_.now();
    for (const auto& [name, role] : roles_) {
      if (has_ended(role->watch) || role->next_read <= now) {
        due.push_back(role);
      } else {
        next = std::min(next, role->next_read);
      }
    }
  }
  for (const auto& role : due) refresh(*role);
  return due.empty() ? next : clock_.now();
}

void Subscriptions::refresh(Role& role) {
  Read present;
  try {
    present = read(role.name);
  } catch (const std::exception& error) {
    log::error("The workers of role {} cannot be read: {}", role.name, error.what());
  }
  const auto watch = present.watch;
  {
    std::lock_guard lock(mutex_);
    if (present.members == nullptr) {
      std::swap(role.watch, present.watch);
      role.next_read = clock_.now() + kMembersPollInterval;
    } else {
      follow(role, present);
    }
  }
  notify_at_end_of(watch);
}

// The thread of a subscriber with a callback. A callback that ends its own subscription may be followed by
// the end of this object, so nothing of it is used once the notifier has been stopped.
void Subscriptions::call(Subscriber& subscriber) {
  while (!subscriber.notifier.stopped()) {
    std::shared_ptr<const Members> members;
    {
      std::lock_guard lock(mutex_);
      if (is_change(subscriber.delivered, *subscriber.role->members))
        members = subscriber.delivered = subscriber.role->members;
    }
    if (members == nullptr) {
      subscriber.notifier.wait_until(clock_, MonotonicTime::max());
      continue;
    }
    try {
      subscriber.callback(subscriber.role->name, *members, subscriber.reference);
    } catch (const std::exception& error) {
      log::error("A subscriber to the workers of role {} failed: {}", subscriber.role->name, error.what());
    } catch (...) { log::error("A subscriber to the workers of role {} failed.", subscriber.role->name); }
  }
}

void Subscriptions::end(Subscriber& subscriber) {
  {
    std::lock_guard lock(mutex_);
    DIVAN_CHECK(subscriptions_ > 0, "the end of a subscription that was not counted");
    --subscriptions_;
    const auto erased = std::erase(subscriber.role->subscribers, &subscriber);
    DIVAN_CHECK(erased == 1, "subscription {} ends {} times", subscriber.reference, erased);
    if (subscriber.role->subscribers.empty()) roles_.erase(subscriber.role->name);
  }
  subscriber.notifier.stop();
  if (!subscriber.thread.joinable()) return;
  if (subscriber.thread.get_id() == std::this_thread::get_id()) {
    subscriber.thread.detach();  // its own callback ends it
  } else {
    subscriber.thread.join();
  }
}

Subscriptions::Subscription& Subscriptions::Subscription::operator=(Subscription&& other) noexcept {
  unsubscribe();
  owner_ = other.owner_;
  subscriber_ = std::move(other.subscriber_);
  return *this;
}

Subscriptions::Reference Subscriptions::Subscription::reference() const { return subscriber_->reference; }

void Subscriptions::Subscription::unsubscribe() {
  if (const auto subscriber = std::exchange(subscriber_, nullptr)) owner_->end(*subscriber);
}

}  // namespace divan::workers
