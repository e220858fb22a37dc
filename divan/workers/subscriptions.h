// Memberships for the programs of a process: a cache of who works in a role, and callbacks for its changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/worker_loop.h"
#include "divan/workers/registry.h"

namespace divan::workers {

/// How many subscriptions a process may have: each one with a callback has a thread.
inline constexpr std::size_t kMaxSubscriptions = 1000;
/// How often a membership is read where a watch may have been lost.
inline constexpr Duration kMembersPollInterval = std::chrono::seconds(5);

/// The subscriptions of a process. The first subscription to a role begins to follow its membership, by a
/// watch of the store; the last one's end stops that and drops the cached members. Thread-safe. The store,
/// registry and clock must outlive it, and it must outlive its subscriptions.
class Subscriptions {
 private:
  struct Role;
  struct Subscriber;

 public:
  /// Names a subscription in the calls of its callback; unique in the process.
  using Reference = std::uint64_t;

  /// Called with the present members first, then once for each change: never twice for one version. If
  /// several changes come while a call runs, the next call has the last of them. What it throws is logged. It
  /// runs on a thread of its own, so it may block; it may end its own subscription.
  using Callback = std::function<void(std::string_view role, const Members& members, Reference reference)>;

  /// Ends when it is destroyed. Then the callback is not called any more, and no call of it runs, unless it
  /// is the callback that ends the subscription.
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

  /// The members of a role as of their version. From the cache if the role has a subscription; then they are
  /// those of some moment since the last change was noticed. Otherwise from the store.
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
  std::mutex mutex_;  // protects the members below, the roles and the subscribers
  std::map<std::string, std::shared_ptr<Role>, std::less<>> roles_;
  std::size_t subscriptions_ = 0;
  Reference last_reference_ = 0;
  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::workers
