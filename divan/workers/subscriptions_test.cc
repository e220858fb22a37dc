#include "divan/workers/subscriptions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "divan/kv/counting_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/unwatched_testing.h"

namespace divan::workers {
namespace {

struct WorkerSubscriptions : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore embedded{&clock};
  kv::testing::CountingStore store{*embedded};
  SeededRng rng{1};
  Registry registry{rng};
  Subscriptions subscriptions{store, registry, clock};

  // What a callback was given. Thread-safe.
  struct Calls {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> seen;  // the ids, as "w1 w2"
    std::vector<kv::Versionstamp> versions;
    std::set<Subscriptions::Reference> references;

    Subscriptions::Callback callback() {
      return [this](std::string_view role, const Members& members, Subscriptions::Reference reference) {
        EXPECT_EQ(role, "role");
        std::string ids;
        for (const auto& worker : members.workers) ids += (ids.empty() ? "" : " ") + worker.id;
        std::lock_guard lock(mutex);
        seen.push_back(ids);
        versions.push_back(members.version);
        references.insert(reference);
        changed.notify_all();
      };
    }
    // Waits for a call with these ids.
    bool wait_for(const std::string& ids) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, std::chrono::minutes(1),
                              [&] { return !seen.empty() && seen.back() == ids; });
    }
    std::vector<std::string> all() {
      std::lock_guard lock(mutex);
      return seen;
    }
  };

  WorkerRef add(std::string_view id, std::string_view options = "{}", std::string_view incarnation = {},
                std::string_view role = "role") {
    return embedded->run([&](kv::Transaction& tx) {
      return registry.add(tx, role, id, options, kDefaultTimeout, incarnation);
    });
  }
  void remove(const WorkerRef& ref) {
    embedded->run([&](kv::Transaction& tx) { registry.remove(tx, ref); });
  }
  std::vector<std::string> ids(std::string_view role = "role") {
    std::vector<std::string> found;
    const auto members = subscriptions.get_workers(role);
    for (const auto& worker : members->workers) found.push_back(worker.id);
    return found;
  }
};

TEST_F(WorkerSubscriptions, BeginWithThePresentMembersAndReportEachChangeOnce) {
  Calls calls;
  const auto subscription = subscriptions.subscribe("role", calls.callback());
  EXPECT_TRUE(calls.wait_for(""));
  const auto w1 = add("w1");
  EXPECT_TRUE(calls.wait_for("w1"));
  EXPECT_TRUE(embedded->run([&](kv::Transaction& tx) { return registry.heartbeat(tx, w1); }));
  add("other", "{}", {}, "other role");
  add("w2");
  EXPECT_TRUE(calls.wait_for("w1 w2"));
  remove(w1);
  EXPECT_TRUE(calls.wait_for("w2"));
  EXPECT_EQ(calls.all(), (std::vector<std::string>{"", "w1", "w1 w2", "w2"}));
  std::lock_guard lock(calls.mutex);
  EXPECT_TRUE(std::is_sorted(calls.versions.begin(), calls.versions.end()));
  EXPECT_EQ(std::set(calls.versions.begin(), calls.versions.end()).size(), calls.versions.size());
  EXPECT_EQ(calls.references, std::set{subscription.reference()});
}

TEST_F(WorkerSubscriptions, OtherOptionsAreAChange) {
  const auto w1 = add("w1");
  Calls calls;
  const auto subscription = subscriptions.subscribe("role", calls.callback());
  EXPECT_TRUE(calls.wait_for("w1"));
  add("w1", R"({"a":1})", w1.incarnation);
  std::unique_lock lock(calls.mutex);
  EXPECT_TRUE(calls.changed.wait_for(lock, std::chrono::minutes(1), [&] { return calls.seen.size() == 2; }));
}

TEST_F(WorkerSubscriptions, ARoleThatBecomesEmptyIsReportedOnceWhateverOtherRolesDo) {
  Calls calls;
  const auto w1 = add("w1");
  const auto subscription = subscriptions.subscribe("role", calls.callback());
  EXPECT_TRUE(calls.wait_for("w1"));
  remove(w1);
  EXPECT_TRUE(calls.wait_for(""));
  for (int i = 0; i < 3; ++i) remove(add("other", "{}", {}, "other role"));
  const int begun = store.begun;
  clock.advance(kMembersPollInterval);
  while (store.begun < begun + 2) {
    clock.advance(kMembersPollInterval);
    std::this_thread::yield();
  }
  add("w2");
  EXPECT_TRUE(calls.wait_for("w2"));
  EXPECT_EQ(calls.all(), (std::vector<std::string>{"w1", "", "w2"}));
}

TEST_F(WorkerSubscriptions, EndingOneSubscriptionKeepsTheOthers) {
  Calls first, second, third;
  const auto a = subscriptions.subscribe("role", first.callback());
  auto b = subscriptions.subscribe("role", second.callback());
  const auto c = subscriptions.subscribe("role", third.callback());
  for (auto* calls : {&first, &second, &third}) EXPECT_TRUE(calls->wait_for(""));
  b.unsubscribe();
  b.unsubscribe();
  add("w1");
  EXPECT_TRUE(first.wait_for("w1"));
  EXPECT_TRUE(third.wait_for("w1"));
  EXPECT_EQ(second.all(), (std::vector<std::string>{""}));
}

TEST_F(WorkerSubscriptions, CallbacksThatThrowOrBlockDoNotAffectOthers) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::atomic<int> thrown = 0, blocked = 0;
  Calls calls;
  std::vector<Subscriptions::Subscription> harmful;
  for (int i = 0; i < 8; ++i) {
    harmful.push_back(subscriptions.subscribe("role", [&](auto, const auto&, auto) {
      ++thrown;
      throw std::runtime_error("what a callback may throw");
    }));
    harmful.push_back(subscriptions.subscribe("role", [&, released](auto, const auto&, auto) {
      ++blocked;
      released.wait();
    }));
    harmful.push_back(subscriptions.subscribe("role", [](auto, const auto&, auto) { throw 5; }));
  }
  const auto subscription = subscriptions.subscribe("role", calls.callback());
  EXPECT_TRUE(calls.wait_for(""));
  // One that has not been called yet would be called for the last change only.
  while (thrown < 8 || blocked < 8) std::this_thread::yield();
  const auto w1 = add("w1");
  EXPECT_TRUE(calls.wait_for("w1"));
  add("w2");
  EXPECT_TRUE(calls.wait_for("w1 w2"));
  EXPECT_EQ(ids(), (std::vector<std::string>{"w1", "w2"}));
  // Callbacks that throw are called for later changes, too; a slow one for the last change.
  while (thrown < 8 * 2) std::this_thread::yield();
  release.set_value();
  while (blocked < 8 * 2) std::this_thread::yield();
}

TEST_F(WorkerSubscriptions, ACallbackMayEndItsOwnSubscription) {
  Subscriptions::Subscription own;
  std::promise<void> begun, done;
  own = subscriptions.subscribe("role", [&, ready = begun.get_future().share()](auto, const auto&, auto) {
    ready.wait();
    own.unsubscribe();
    done.set_value();
  });
  begun.set_value();
  done.get_future().wait();
  Calls calls;
  const auto other = subscriptions.subscribe("role", calls.callback());
  add("w1");
  EXPECT_TRUE(calls.wait_for("w1"));
}

TEST_F(WorkerSubscriptions, AfterItsEndNoCallRuns) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> ended = false, late = false;
    auto subscription =
        subscriptions.subscribe("role", [&](auto, const auto&, auto) { late = ended.load(); });
    if (i % 2 == 0) add("w1");
    subscription.unsubscribe();
    ended = true;
    EXPECT_FALSE(late);
  }
}

TEST_F(WorkerSubscriptions, AnEndWaitsForTheCallThatRuns) {
  std::promise<void> started, release;
  std::atomic<bool> finished = false;
  auto subscription =
      subscriptions.subscribe("role", [&, released = release.get_future().share()](auto, const auto&, auto) {
        started.set_value();
        released.wait();
        finished = true;
      });
  started.get_future().wait();
  auto ended = std::async(std::launch::async, [&] {
    subscription.unsubscribe();
    return finished.load();
  });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  release.set_value();
  EXPECT_TRUE(ended.get());
}

TEST_F(WorkerSubscriptions, TheCacheIsReadWithoutTheStoreAndDroppedWithTheLastSubscription) {
  add("w1");
  auto first = subscriptions.subscribe("role");
  auto second = subscriptions.subscribe("role");
  const int begun = store.begun;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ids(), (std::vector<std::string>{"w1"}));
  EXPECT_EQ(store.begun, begun);
  EXPECT_EQ(subscriptions.get_workers("role")->version,
            embedded->run([&](kv::Transaction& tx) { return registry.members(tx, "role").version; }));
  add("w2");
  while (ids().size() < 2) std::this_thread::yield();
  first.unsubscribe();
  EXPECT_EQ(ids().size(), 2u);
  second.unsubscribe();
  const int before = store.begun;
  EXPECT_EQ(ids().size(), 2u);
  EXPECT_EQ(store.begun, before + 1);
  EXPECT_TRUE(ids("nobody").empty());
}

TEST_F(WorkerSubscriptions, WithoutWatchesTheMembershipIsPolled) {
  kv::testing::UnwatchedStore unwatched(*embedded);
  Subscriptions polling(unwatched, registry, clock);
  Calls calls;
  const auto subscription = polling.subscribe("role", calls.callback());
  EXPECT_TRUE(calls.wait_for(""));
  add("w1");
  EXPECT_TRUE(polling.get_workers("role")->workers.empty());
  clock.advance(kMembersPollInterval);
  EXPECT_TRUE(calls.wait_for("w1"));
}

TEST_F(WorkerSubscriptions, AreLimited) {
  std::vector<Subscriptions::Subscription> many;
  for (std::size_t i = 0; i < kMaxSubscriptions; ++i) many.push_back(subscriptions.subscribe("role"));
  EXPECT_THROW(subscriptions.subscribe("role"), Error);
  many.pop_back();
  EXPECT_NO_THROW(subscriptions.subscribe("role"));
}

}  // namespace
}  // namespace divan::workers
