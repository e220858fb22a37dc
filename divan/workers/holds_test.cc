#include <gtest/gtest.h>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/workers/monitor.h"

namespace divan::workers {
namespace {

struct WorkerHolds : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  Registry registry{rng};

  // Registers and holds a worker, like a connection whose client had this incarnation before.
  struct Held {
    Hold hold;
    std::shared_ptr<kv::Watch> watch;
  };
  Held hold(std::string_view incarnation = {}) {
    return store->run([&](kv::Transaction& tx) {
      const auto ref = registry.add(tx, "role", "w", "{}", kDefaultTimeout, incarnation);
      Held held{registry.hold(tx, ref), nullptr};
      held.watch = registry.watch(tx, held.hold);
      return held;
    });
  }
  void disconnect(const Held& held) {
    store->run([&](kv::Transaction& tx) { registry.end_held(tx, held.hold); });
  }
  HoldState state(const Held& held) {
    return store->run([&](kv::Transaction& tx) { return registry.state(tx, held.hold); });
  }
  std::optional<WorkerRef> found() {
    return store->run([&](kv::Transaction& tx) { return registry.find(tx, "role", "w"); });
  }
  std::int64_t beats() {
    return store->run([&](kv::Transaction& tx) {
      const std::vector<Registry::Name> names{{"role", "w"}};
      return registry.heartbeats(tx, names, {}).at(0).counter;
    });
  }
};

TEST_F(WorkerHolds, TheEndOfTheConnectionEndsTheRegistration) {
  const auto held = hold();
  EXPECT_EQ(found(), held.hold.ref);
  EXPECT_EQ(state(held), HoldState::holds);
  disconnect(held);
  EXPECT_EQ(found(), std::nullopt);
  EXPECT_EQ(state(held), HoldState::ended);
}

TEST_F(WorkerHolds, TheOldConnectionDoesNotEndARegistrationThatAnotherHolds) {
  const auto first = hold();
  const auto second = hold(first.hold.ref.incarnation);
  EXPECT_EQ(second.hold.ref, first.hold.ref);
  EXPECT_TRUE(first.watch->fired());
  EXPECT_EQ(state(first), HoldState::taken);
  disconnect(first);
  EXPECT_EQ(found(), second.hold.ref);
  disconnect(second);
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(WorkerHolds, TheEndOfAConnectionEndsNoOtherRegistration) {
  const auto first = hold();
  const auto second = hold();
  EXPECT_NE(second.hold.ref, first.hold.ref);
  EXPECT_EQ(state(first), HoldState::ended);
  disconnect(first);
  EXPECT_EQ(found(), second.hold.ref);
}

TEST_F(WorkerHolds, TheEndOfARegistrationFiresTheWatchAndAHeartbeatDoesNot) {
  const auto held = hold();
  store->run([&](kv::Transaction& tx) {
    EXPECT_TRUE(registry.heartbeat(tx, held.hold.ref));
    registry.add(tx, "role", "w", R"({"a":1})", kDefaultTimeout, held.hold.ref.incarnation);
    registry.add(tx, "role", "w2", "{}");
  });
  EXPECT_FALSE(held.watch->fired());
  EXPECT_EQ(state(held), HoldState::holds);
  store->run([&](kv::Transaction& tx) { registry.remove(tx, held.hold.ref); });
  EXPECT_TRUE(held.watch->fired());
}

TEST_F(WorkerHolds, ARegistrationWithoutAConnectionIsNotHeld) {
  const auto held = hold();
  store->run([&](kv::Transaction& tx) {
    registry.remove(tx, held.hold.ref);
    registry.add(tx, "role", "w", "{}");
  });
  const auto ref = found();
  disconnect(held);
  EXPECT_EQ(found(), ref);
}

TEST_F(WorkerHolds, AHoldDoesNotReplaceHeartbeats) {
  const auto held = hold();
  Monitor observer(*store, registry, clock, rng);
  for (MonotonicTime next = observer.step(), end = next + kDefaultTimeout; next <= end;
       next = observer.step())
    clock.advance(next - clock.now());
  EXPECT_EQ(found(), std::nullopt);
  EXPECT_TRUE(held.watch->fired());
}

TEST_F(WorkerHolds, RegisteringAgainCountsAsAHeartbeat) {
  const auto held = hold();
  EXPECT_EQ(beats(), 0);
  hold(held.hold.ref.incarnation);
  EXPECT_EQ(beats(), 1);
}

}  // namespace
}  // namespace divan::workers
