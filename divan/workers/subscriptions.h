// Memberships within a process: a cache of the workers of a role, and callbacks for its changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/worker_loop.h"
#include "divan/workers/registry.h"

namespace divan::workers {

/// The most subscriptions of a process. Each one with a callback has a thread.
inline constexpr std::size_t kMaxSubscriptions = 1000;
/// How often a membership is read in case that a watch was lost.
inline constexpr Duration kMembersPollInterval = std::chrono::seconds(5);

/// The subscriptions of a process. The first subscription to a role begins to follow its membership with a
/// watch of the store; the end of the last one stops this and drops the cached members. Thread-safe. The
/// store, registry and clock must outlive it, and it must outlive its subscriptions.
class Subscriptions {
 private:
  struct Role;
  struct Subscriber;

 public:
  /// Names a subscription in the calls of its callback; unique in the process.
  using Reference = std::uint64_t;

  /// Called with the present members first, and then for each change, never twice for one version. If there
  /// are several changes while a call runs, the next call has the last of them. Exceptions are logged. Runs
  /// on a thread of its own, so it may block. It may end its own subscription.
  using Callback = std::function<void(std::string_view role, const Members& members, Reference reference)>;

  /// Ends when it is destroyed. After that no call of the callback begins or runs, except the one that ends
  /// the subscription itself.
  class Subscription {
   public:
    Subscription() = default;
    ~Subscription() { unsubscribe(); }
    Subscription(Subscription&& other) noexcept = default;
    Subscription& operator=(Subscription&& other) noexcept;

    Reference reference() const;
    /// Ends it before its destruction. Idempotent.
    void unsubscribe();

   private:
    friend class Subscriptions;
    Subscription(Subscriptions& owner, std::shared_ptr<Subscriber> subscriber)
        : owner_(&owner), subscriber_(std::move(subscriber)) {}

    Subscriptions* owner_ = nullptr;
    std::shared_ptr<Subscriber> subscriber_;
  };

  Subscriptions(kv::Database& store, Registry& registry, const Clock& clock);
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// Follows the membership of a role. Without a callback it keeps the cache for get_workers(). Throws errors
  /// of the store, and too_many_subscriptions (429) beyond kMaxSubscriptions.
  Subscription subscribe(std::string_view role, Callback callback = {});

  /// The members of a role. From the cache if the role has a subscription, so a change that has just been
  /// made may be missing; otherwise from the store.
  std::shared_ptr<const Members> get_workers(std::string_view role);

 private:
  struct Read {
    std::shared_ptr<const Members> members;
    std::shared_ptr<kv::Watch> watch;  // null if the store has none left
  };

  Read read(const std::string& role);
  void follow(Role& role, Read& read);
  void notify_at_end_of(const std::shared_ptr<kv::Watch>& watch);
  MonotonicTime step();
  void refresh(Role& role);
  void call(Subscriber& subscriber);
  void end(Subscriber& subscriber);

  kv::Database& store_;
  Registry& registry_;
  const Clock& clock_;
  // Protects the members below, the roles and the subscribers.
  Mutex mutex_{MutexRank::subscriptions, "Subscriptions::mutex_"};
  std::map<std::string, std::shared_ptr<Role>, std::less<>> roles_;
  std::size_t subscriptions_ = 0;
  Reference last_reference_ = 0;
  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::workers
