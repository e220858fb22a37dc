#include "divan/workers/subscriptions.h"

#include <vector>

#include "divan/base/error.h"
#include "divan/base/log.h"

namespace divan::workers {
namespace {

bool has_ended(const std::shared_ptr<kv::Watch>& watch) {
  return watch != nullptr && (watch->fired() || watch->cancelled());
}

// Whether `next` is a change for somebody who knows `known`.
bool is_change(const std::shared_ptr<const Members>& known, const Members& next) {
  if (known == nullptr) return true;
  // The version of a role without workers rises with other roles.
  if (known->workers.empty() && next.workers.empty()) return false;
  return next.version > known->version;
}

}  // namespace

// A role that is followed. Guarded by the shared mutex, except the name.
struct Subscriptions::Role {
  std::string name;
  std::shared_ptr<const Members> members;
  std::shared_ptr<kv::Watch> watch;
  MonotonicTime next_read{};
  std::size_t subscribers = 0;
};

// Guarded by the shared mutex, except what never changes.
struct Subscriptions::Subscriber {
  std::shared_ptr<Role> role;
  Callback callback;
  Reference reference = 0;
  std::shared_ptr<const Members> told;
  bool ended = false;
  std::thread thread;  // of the callback
};

Subscriptions::Subscriptions(kv::Database& store, Registry& registry, const Clock& clock)
    : store_(store), registry_(registry), clock_(clock), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "members");
}

Subscriptions::~Subscriptions() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  thread_.join();
}

Subscriptions::Read Subscriptions::read(const std::string& role) {
  Read read;
  store_.run([&](kv::Transaction& tx) {
    read.watch = registry_.watch(tx, role);
    read.members = std::make_shared<const Members>(registry_.members(tx, role));
  });
  return read;
}

// Needs the shared mutex. Leaves the former watch in `read`, which must end without the mutex: an end calls.
void Subscriptions::follow(Role& role, Read& read) {
  if (is_change(role.members, *read.members)) role.members = read.members;
  std::swap(role.watch, read.watch);
  role.next_read = clock_.now() + kMembersPollInterval;
}

Subscriptions::Subscription Subscriptions::subscribe(std::string_view role, Callback callback) {
  Read present = read(std::string(role));
  const auto watch = present.watch;
  auto subscriber = std::make_shared<Subscriber>();
  {
    std::lock_guard lock(shared_->mutex);
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
    ++followed->subscribers;
    follow(*followed, present);
    shared_->woken = true;
    subscriber->role = followed;
    subscriber->callback = std::move(callback);
    subscriber->reference = ++last_reference_;
  }
  Subscription subscription(*this, subscriber);
  wake_at_end_of(watch);
  if (subscriber->callback)
    subscriber->thread = std::thread([shared = shared_, subscriber] { call(*shared, *subscriber); });
  shared_->changed.notify_all();
  return subscription;
}

std::shared_ptr<const Members> Subscriptions::get_workers(std::string_view role) {
  {
    std::lock_guard lock(shared_->mutex);
    if (const auto followed = roles_.find(role); followed != roles_.end()) return followed->second->members;
  }
  return std::make_shared<const Members>(
      store_.run([&](kv::Transaction& tx) { return registry_.members(tx, role); }));
}

// Without the mutex: a watch that has ended calls at once.
void Subscriptions::wake_at_end_of(const std::shared_ptr<kv::Watch>& watch) {
  if (watch == nullptr) return;
  watch->on_end([shared = shared_] {
    std::lock_guard lock(shared->mutex);
    shared->woken = true;
    shared->changed.notify_all();
  });
}

void Subscriptions::run() {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  while (!shared.stopping) {
    shared.woken = false;
    std::vector<std::shared_ptr<Role>> due;
    MonotonicTime next = MonotonicTime::max();
    const MonotonicTime now = clock_.now();
    for (const auto& [name, role] : roles_) {
      if (has_ended(role->watch) || role->next_read <= now) {
        due.push_back(role);
      } else {
        next = std::min(next, role->next_read);
      }
    }
    for (const auto& role : due) {
      lock.unlock();
      Read present;
      try {
        present = read(role->name);
      } catch (const std::exception& error) {
        log::error("The workers of role {} could not be read: {}", role->name, error.what());
      }
      const auto watch = present.watch;
      lock.lock();
      if (present.members == nullptr) {
        std::swap(role->watch, present.watch);
        role->next_read = clock_.now() + kMembersPollInterval;
      } else {
        follow(*role, present);
      }
      lock.unlock();
      present.watch = nullptr;
      wake_at_end_of(watch);
      lock.lock();
    }
    if (!due.empty()) {
      shared.changed.notify_all();
      continue;
    }
    clock_.wait_until(lock, shared.changed, next, [&] { return shared.stopping || shared.woken; });
  }
}

// The thread of a subscriber with a callback.
void Subscriptions::call(Shared& shared, Subscriber& subscriber) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(
        lock, [&] { return subscriber.ended || is_change(subscriber.told, *subscriber.role->members); });
    if (subscriber.ended) return;
    subscriber.told = subscriber.role->members;
    const auto members = subscriber.told;
    lock.unlock();
    try {
      subscriber.callback(subscriber.role->name, *members, subscriber.reference);
    } catch (const std::exception& error) {
      log::error("A subscriber to the workers of role {} failed: {}", subscriber.role->name, error.what());
    } catch (...) { log::error("A subscriber to the workers of role {} failed.", subscriber.role->name); }
    lock.lock();
  }
}

void Subscriptions::end(Subscriber& subscriber) {
  {
    std::lock_guard lock(shared_->mutex);
    subscriber.ended = true;
    --subscriptions_;
    if (--subscriber.role->subscribers == 0) roles_.erase(subscriber.role->name);
  }
  shared_->changed.notify_all();
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
