#include <gmock/gmock.h>

#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/forwarding.h"
#include "divan/kv/tuple_packer.h"
#include "divan/workers/check.h"
#include "divan/workers/monitor.h"

namespace divan::workers {
namespace {

using std::chrono::seconds;

struct Workers : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  Registry registry{rng};
  std::vector<std::string> removed;

  void SetUp() override {
    registry.on_removal([this](kv::Transaction& tx, std::string_view role, std::string_view id) {
      tx.after_commit([this, name = std::string(role) + "/" + std::string(id)] { removed.push_back(name); });
    });
  }

  WorkerRef add(std::string_view id, std::string_view options = "{}", std::string_view incarnation = {}) {
    return store->run([&](kv::Transaction& tx) {
      return registry.add(tx, "role", id, options, kDefaultTimeout, incarnation);
    });
  }
  Members members(std::string_view role = "role") {
    return store->run([&](kv::Transaction& tx) { return registry.members(tx, role); });
  }
  std::string ids() {
    std::string ids;
    for (const auto& worker : members().workers) ids += worker.id + " ";
    return ids;
  }
  bool heartbeat(const WorkerRef& ref) {
    return store->run([&](kv::Transaction& tx) { return registry.heartbeat(tx, ref); });
  }
  std::vector<Registry::Heartbeat> heartbeats() {
    return store->run([&](kv::Transaction& tx) {
      std::vector<Registry::Name> names;
      Registry::Roster roster;
      registry.refresh(tx, roster);
      for (const auto& [role, members] : roster.roles) {
        for (const auto& [id, entry] : members->workers) names.push_back({role, id});
      }
      return registry.heartbeats(tx, names, roster);
    });
  }
  std::size_t heartbeat_rows() {
    std::string prefix;
    kv::tuple::Packer(prefix).string("workers").string("role").string("hb");
    return store->run([&](kv::Transaction& tx) { return tx.get_range(kv::below(prefix)).rows.size(); });
  }
  // Like the monitor's thread: runs a step whenever one is due.
  void pass(Monitor& monitor, Duration duration) {
    for (const MonotonicTime end = clock.now() + duration;;) {
      const MonotonicTime next = monitor.step();
      if (next > end) return clock.advance(end - clock.now());
      clock.advance(next - clock.now());
    }
  }
};

TEST_F(Workers, RowAndHeartbeatAreAddedAndRemovedTogether) {
  const auto ref = add("w1");
  EXPECT_EQ(ids(), "w1 ");
  EXPECT_EQ(heartbeat_rows(), 1u);
  store->run([&](kv::Transaction& tx) { registry.remove(tx, ref); });
  EXPECT_EQ(ids(), "");
  EXPECT_EQ(heartbeat_rows(), 0u);
  EXPECT_EQ(removed, (std::vector<std::string>{"role/w1"}));
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { registry.remove(tx, ref); }), Error);
}

TEST_F(Workers, TheSameOwnerKeepsItsRegistrationAnotherReplacesIt) {
  const auto first = add("w1");
  EXPECT_EQ(add("w1", "{}", first.incarnation), first);
  EXPECT_TRUE(removed.empty());
  const auto second = add("w1");
  EXPECT_NE(second, first);
  EXPECT_EQ(removed.size(), 1u);
  EXPECT_FALSE(heartbeat(first));
  EXPECT_TRUE(heartbeat(second));
}

TEST_F(Workers, TheVersionChangesWithTheMembershipOnly) {
  const auto ref = add("w1");
  const auto v1 = members().version;
  EXPECT_TRUE(heartbeat(ref));
  add("w1", "{}", ref.incarnation);
  EXPECT_EQ(members().version, v1);
  add("w1", R"({"a":1})", ref.incarnation);
  const auto v2 = members().version;
  EXPECT_LT(v1, v2);
  EXPECT_EQ(members().workers[0].options, R"({"a":1})");
  add("w2");
  const auto v3 = members().version;
  EXPECT_LT(v2, v3);
  EXPECT_EQ(members("other").version, kv::Versionstamp());
  EXPECT_TRUE(members("other").workers.empty());
}

TEST_F(Workers, W1IsNotW10) {
  const auto w1 = add("w1");
  add("w10");
  store->run([&](kv::Transaction& tx) { registry.remove(tx, w1); });
  EXPECT_EQ(ids(), "w10 ");
  EXPECT_EQ(heartbeat_rows(), 1u);
}

TEST_F(Workers, InvalidNamesAndOptionsAreRejected) {
  EXPECT_THROW(add(""), Error);
  EXPECT_THROW(add(std::string(kMaxNameBytes + 1, 'w')), Error);
  EXPECT_THROW(add("w\xff"), Error);
  EXPECT_THROW(add("w", "{\xff}"), Error);
  EXPECT_THROW(add("w", "[]"), Error);
  EXPECT_THROW(add("w", "{" + std::string(kMaxOptionsBytes, ' ') + "}"), Error);
}

TEST_F(Workers, ALiveWorkerIsNotEvicted) {
  Monitor monitor(*store, registry, clock, rng);
  Monitor observer(*store, registry, clock, rng);
  const auto worker = monitor.add("role", "w1", "{}");
  const auto ref = worker->ref();
  for (int i = 0; i < 300; ++i) {
    clock.advance(kMaxPollInterval);
    monitor.step();
    observer.step();
  }
  EXPECT_EQ(worker->ref(), ref);
  EXPECT_EQ(ids(), "w1 ");
  EXPECT_TRUE(removed.empty());
}

// Two processes whose wall clocks differ by two hours and whose monotonic clocks differ, too. No live worker
// is evicted, and silent ones are.
TEST_F(Workers, ClocksNeedNotAgree) {
  constexpr std::int64_t kHourMs = 3'600'000;
  ManualClock slow(1'700'000'000'000 - kHourMs), fast(1'700'000'000'000 + kHourMs);
  fast.advance(seconds(5000));
  Monitor monitor(*store, registry, slow, rng), other(*store, registry, fast, rng);
  auto worker = monitor.add("role", "w1", "{}");
  const auto second = other.add("role", "w2", "{}");
  const auto pass = [&](int count, auto... monitors) {
    for (int i = 0; i < 2 * count; ++i) {
      slow.advance(kMaxPollInterval);
      fast.advance(kMaxPollInterval);
      (monitors->step(), ...);
    }
  };
  pass(100, &monitor, &other);
  EXPECT_TRUE(removed.empty());
  pass(17, &monitor);
  EXPECT_EQ(ids(), "w1 ");
  pass(1, &other);  // registers again
  pass(17, &other);
  EXPECT_EQ(ids(), "w2 ");
}

TEST_F(Workers, TwoProcessesOnOneStoreSeeEachOther) {
  SeededRng other_rng{2};
  Registry other_registry(other_rng);
  Monitor monitor(*store, registry, clock, rng), other(*store, other_registry, clock, other_rng);
  const auto watch = store->run([&](kv::Transaction& tx) { return registry.watch(tx, "role"); });
  const auto first = monitor.add("role", "w1", "{}");
  EXPECT_TRUE(watch->fired());
  auto second = other.add("role", "w2", R"({"a":1})");
  const auto seen = members();
  const auto as_seen_by_other =
      store->run([&](kv::Transaction& tx) { return other_registry.members(tx, "role"); });
  EXPECT_EQ(seen.version, as_seen_by_other.version);
  ASSERT_EQ(seen.workers.size(), 2u);
  EXPECT_EQ(seen.workers[1].incarnation, second->ref().incarnation);
  EXPECT_EQ(seen.workers[1].options, R"({"a":1})");
  second.reset();
  EXPECT_EQ(ids(), "w1 ");
  EXPECT_LT(seen.version, members().version);
}

TEST_F(Workers, ASilentWorkerIsEvictedByAnotherWithinTwiceItsTimeout) {
  Monitor observer(*store, registry, clock, rng);
  add("silent");
  pass(observer, kDefaultTimeout - seconds(1));
  EXPECT_EQ(ids(), "silent ");
  pass(observer, seconds(2));
  EXPECT_EQ(ids(), "");
  EXPECT_EQ(removed, (std::vector<std::string>{"role/silent"}));
}

TEST_F(Workers, AFrozenProcessDoesNotEvictItself) {
  Monitor monitor(*store, registry, clock, rng);
  const auto worker = monitor.add("role", "w1", "{}");
  monitor.step();
  const auto ref = worker->ref();
  clock.advance(seconds(100));
  monitor.step();
  EXPECT_EQ(worker->ref(), ref);
}

// A store in which beginning a transaction takes long, as if the process were frozen.
class SlowStore final : public kv::ForwardingDatabase {
 public:
  SlowStore(kv::Database& inner, ManualClock& clock) : ForwardingDatabase(inner), clock_(clock) {}
  std::unique_ptr<kv::Transaction> begin() override {
    clock_.advance(delay);
    return inner().begin();
  }
  Duration delay{};

 private:
  ManualClock& clock_;
};

TEST_F(Workers, AnObserverThatWasFrozenDuringAPollEvictsNoWorker) {
  SlowStore slow(*store, clock);
  Monitor observer(slow, registry, clock, rng);
  add("w1");
  slow.delay = kDefaultTimeout * 3;
  observer.step();
  slow.delay = Duration();
  // The heartbeat was first read just now, so the timeout has not passed.
  clock.advance(seconds(1));
  observer.step();
  EXPECT_EQ(ids(), "w1 ");
}

TEST_F(Workers, AnEvictedWorkerThatIsAliveRegistersAgain) {
  Monitor monitor(*store, registry, clock, rng);
  Monitor observer(*store, registry, clock, rng);
  const auto worker = monitor.add("role", "w1", "{}");
  const auto ref = worker->ref();
  pass(observer, kDefaultTimeout * 2);
  EXPECT_EQ(ids(), "");
  monitor.step();
  EXPECT_EQ(ids(), "w1 ");
  EXPECT_NE(worker->ref(), ref);
  EXPECT_FALSE(heartbeat(ref));
}

// A store that can be made to fail.
class FailingStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    if (failing) throw kv::Error(kv::ErrorCode::io_error);
    return inner().begin();
  }
  bool failing = false;
};

TEST_F(Workers, AHeartbeatThatFailedIsSentAgainSoon) {
  FailingStore failing(*store);
  Monitor monitor(failing, registry, clock, rng);
  const auto worker = monitor.add("role", "w1", "{}");
  const auto counter = [&] { return heartbeats().at(0).counter; };
  clock.advance(kDefaultTimeout / 3);
  failing.failing = true;
  monitor.step();
  EXPECT_EQ(counter(), 0);
  failing.failing = false;
  clock.advance(seconds(1));
  monitor.step();
  EXPECT_EQ(counter(), 1);
}

TEST_F(Workers, AnEvictionThatFailsDoesNotPreventOthers) {
  registry.on_removal([](kv::Transaction&, std::string_view, std::string_view id) {
    if (id == "bad") throw kv::Error(kv::ErrorCode::transaction_too_large);
  });
  Monitor observer(*store, registry, clock, rng);
  add("bad");
  add("silent");
  pass(observer, kDefaultTimeout + seconds(1));
  EXPECT_EQ(ids(), "bad ");
}

TEST_F(Workers, AHeartbeatThatRacesTheRemovalLeavesNoRow) {
  const auto ref = add("w1");
  auto late = store->begin();
  EXPECT_TRUE(registry.heartbeat(*late, ref));
  store->run([&](kv::Transaction& tx) { registry.remove(tx, ref); });
  EXPECT_THROW(late->commit(), kv::Error);
  EXPECT_EQ(heartbeat_rows(), 0u);
}

TEST_F(Workers, TheOwnersEndUnregistersOnce) {
  Monitor monitor(*store, registry, clock, rng);
  auto worker = monitor.add("role", "w1", "{}");
  store->run([&](kv::Transaction& tx) { registry.remove(tx, worker->ref()); });
  const auto version = members().version;
  worker.reset();
  EXPECT_EQ(members().version, version);
  auto second = monitor.add("role", "w2", "{}");
  const auto present = members().version;
  second.reset();
  EXPECT_EQ(ids(), "");
  EXPECT_EQ(heartbeat_rows(), 0u);
  EXPECT_LT(present, members().version);
}

TEST_F(Workers, TheMonitorsThreadSendsHeartbeatsAndEvicts) {
  SystemClock real;
  Monitor observer(*store, registry, real, rng);
  store->run([&](kv::Transaction& tx) { registry.add(tx, "role", "silent", "{}", kMinTimeout); });
  const auto watch = store->run([&](kv::Transaction& tx) { return registry.watch(tx, "role"); });
  const auto worker = observer.add("other", "alive", "{}", kMinTimeout);
  const auto ref = worker->ref();
  observer.start();
  EXPECT_TRUE(watch->wait_until(real, real.now() + seconds(60)));
  EXPECT_EQ(ids(), "");
  EXPECT_EQ(members("other").workers.size(), 1u);
}

TEST_F(Workers, AMonitorStoresTheLoadOfItsWorkersWithEachHeartbeat) {
  Monitor monitor(*store, registry, clock, rng);
  int calls = 0;
  auto worker = monitor.add("role", "w1", "{}", seconds(15),
                            [&] { return R"({"n":)" + std::to_string(++calls) + "}"; });
  const auto silent = monitor.add("role", "w2", "{}");
  const auto loads = [&] {
    return store->run([&](kv::Transaction& tx) { return registry.loads(tx, "role"); });
  };
  const auto version = members().version;
  EXPECT_TRUE(loads().empty());
  for (const char* load : {R"({"n":1})", R"({"n":2})"}) {
    clock.advance(seconds(5));
    monitor.step();
    EXPECT_EQ(loads(), (std::map<std::string, std::string>{{"w1", load}}));
  }
  EXPECT_EQ(members().version, version) << "subscribers are not woken";
  kv::testing::MapRows rows(*store);
  kv::Findings findings;
  Check check(store->begin()->read_version(), findings);
  kv::testing::run_checks(rows, {&check});
  EXPECT_THAT(findings.kept(), testing::IsEmpty());
  worker.reset();
  EXPECT_TRUE(loads().empty());
}

TEST_F(Workers, HeartbeatsHaveJitter) {
  constexpr int kHeartbeats = 100;
  Monitor monitor(*store, registry, clock, rng);
  const auto worker = monitor.add("role", "w1", "{}");
  clock.advance(kDefaultTimeout / 3);
  std::set<Duration> pauses;
  for (int i = 0; i < kHeartbeats; ++i) {
    const Duration pause = monitor.step() - clock.now();
    EXPECT_EQ(heartbeats().at(0).counter, i + 1);
    pauses.insert(pause);
    clock.advance(pause);
  }
  EXPECT_GT(pauses.size(), kHeartbeats / 2);
  const Duration longest = kDefaultTimeout / 3, shortest = longest * 3 / 4;
  EXPECT_GE(*pauses.begin(), shortest);
  EXPECT_LE(*pauses.rbegin(), longest);
  EXPECT_GT(*pauses.rbegin() - *pauses.begin(), (longest - shortest) / 2);
}

TEST_F(Workers, DamagedRowsAreRejected) {
  const auto put_row = [&](std::string_view kind, std::int64_t number) {
    std::string key, value;
    kv::tuple::Packer(key).string("workers").string("role").string(kind).string("w1");
    kv::tuple::Packer packer(value);
    packer.string("incarnation").integer(number);
    if (kind == "w") packer.string("{}");
    store->run([&](kv::Transaction& tx) { tx.set(key, value); });
  };
  // In nanoseconds the second exceeds 2^64 by about 500 ms.
  for (const std::int64_t timeout : {std::int64_t{0}, 18446744073710 + std::int64_t{500}, INT64_MAX}) {
    add("w1");
    put_row("w", timeout);
    EXPECT_THROW(members(), Error) << timeout;
    put_row("w", 1000);
    EXPECT_EQ(members().workers.at(0).timeout, seconds(1));
  }
  const auto ref = add("w1");
  // A heartbeat replaces a damaged one.
  put_row("hb", INT64_MAX);
  EXPECT_TRUE(heartbeat(ref));
  put_row("hb", 1);
  EXPECT_TRUE(heartbeat(ref));
}

}  // namespace
}  // namespace divan::workers
