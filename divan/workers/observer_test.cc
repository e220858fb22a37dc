#include "divan/workers/observer.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <utility>

#include "divan/kv/unwatched_testing.h"

#include "divan/kv/counting_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/forwarding.h"
#include "divan/kv/tuple_packer.h"
#include "divan/workers/monitor.h"

namespace divan::workers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct WorkerObserver : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore embedded{&clock};
  kv::testing::CountingStore store{*embedded};
  SeededRng rng{1};
  Registry registry{rng};
  Monitor monitor{store, registry, clock, rng};
  MonotonicTime next_step = clock.now();

  WorkerRef add(std::string_view id, Duration timeout, std::string_view incarnation = {}) {
    return embedded->run(
        [&](kv::Transaction& tx) { return registry.add(tx, "role", id, "{}", timeout, incarnation); });
  }
  void beat(const WorkerRef& ref) {
    embedded->run([&](kv::Transaction& tx) { EXPECT_TRUE(registry.heartbeat(tx, ref)); });
  }
  bool is_alive(const WorkerRef& ref) {
    return embedded->run([&](kv::Transaction& tx) { return registry.is_alive(tx, ref); });
  }
  // Like the monitor's thread: sleeps until the next step is due or the monitor is woken.
  void pass(Duration duration) {
    for (const auto end = clock.now() + duration;;) {
      if (monitor.woken() || next_step <= clock.now()) {
        next_step = monitor.step();
      } else if (next_step > end) {
        return clock.advance(end - clock.now());
      } else {
        clock.advance(next_step - clock.now());
      }
    }
  }
};

TEST_F(WorkerObserver, SilentWorkersAreEvictedSoonAfterTheirTimeout) {
  for (const auto timeout : {milliseconds(100), milliseconds(1'500), milliseconds(15'000)}) {
    for (int round = 0; round < 20; ++round) {
      const auto ref = add("w", timeout);
      // The last heartbeat comes at any time between two polls.
      pass(Duration(static_cast<std::int64_t>(
          rng.below(static_cast<std::uint64_t>(timeout / milliseconds(1)) * 900'000))));
      beat(ref);
      pass(timeout - milliseconds(1));
      EXPECT_TRUE(is_alive(ref));
      pass(milliseconds(1) + std::min(milliseconds(500), timeout / 4));
      EXPECT_FALSE(is_alive(ref)) << timeout.count() << " ms";
    }
  }
}

TEST_F(WorkerObserver, TheSilenceOfAWorkerGrowsUntilItsNextHeartbeat) {
  const auto own = monitor.add("role", "own", "{}", seconds(15));
  const auto ref = add("w", seconds(15));
  const auto silence = [&] {
    const auto silences = monitor.silences("role");
    EXPECT_EQ(silences.size(), 1u);
    return silences.at(ref);
  };
  pass(seconds(4));
  EXPECT_EQ(silence(), seconds(4));
  beat(ref);
  pass(milliseconds(700));
  EXPECT_LE(silence(), milliseconds(700));
  EXPECT_GE(silence(), milliseconds(200));
  EXPECT_TRUE(monitor.silences("other").empty());
  pass(seconds(15));
  EXPECT_FALSE(is_alive(ref));
  EXPECT_TRUE(monitor.silences("role").empty());
}

TEST_F(WorkerObserver, WithoutOtherWorkersNothingIsRead) {
  const auto worker = monitor.add("role", "own", "{}", seconds(15));
  pass(seconds(1));
  const auto ref = worker->ref();
  const int before = store.begun;
  int heartbeats = 0;
  for (int i = 0; i < 1000; ++i) {
    const int begun = store.begun;
    pass(seconds(4));  // the shortest pause between heartbeats is 3.75 s
    EXPECT_LE(store.begun - begun, 2);
    heartbeats += store.begun - begun;
  }
  EXPECT_EQ(store.begun - before, heartbeats);
  EXPECT_LE(heartbeats, 4000.0 / 3.75 + 1);
  EXPECT_EQ(worker->ref(), ref);
}

TEST_F(WorkerObserver, ANewWorkerIsObservedFromThenOn) {
  const auto own = monitor.add("role", "own", "{}", seconds(3600));
  pass(seconds(60));
  EXPECT_FALSE(monitor.woken());
  const auto ref = add("w", seconds(2));
  EXPECT_TRUE(monitor.woken());
  pass(seconds(2));
  EXPECT_FALSE(is_alive(ref));
  // And again, in another role.
  pass(seconds(60));
  const auto other =
      embedded->run([&](kv::Transaction& tx) { return registry.add(tx, "other", "w", "{}", seconds(2)); });
  EXPECT_TRUE(monitor.woken());
  pass(seconds(2));
  EXPECT_FALSE(is_alive(other));
}

TEST_F(WorkerObserver, DamagedRowsDoNotPreventOthersFromBeingObserved) {
  const auto damage = [&](std::string_view kind, std::string_view id) {
    std::string key;
    kv::tuple::Packer(key).string("workers").string("role").string(kind).string(id);
    embedded->run([&](kv::Transaction& tx) { tx.set(key, "?"); });
  };
  const auto registration = add("registration", seconds(1));
  const auto heartbeat = add("heartbeat", seconds(1));
  const auto good = add("good", seconds(1));
  damage("w", "registration");
  damage("hb", "heartbeat");
  pass(seconds(3));
  EXPECT_FALSE(is_alive(good));
  // The next heartbeat replaces the damaged one, and the lack of further ones is detected.
  EXPECT_TRUE(is_alive(heartbeat));
  beat(heartbeat);
  pass(seconds(3));
  EXPECT_FALSE(is_alive(heartbeat));
  // Another registration replaces the damaged one.
  const auto again = add("registration", seconds(1));
  EXPECT_TRUE(is_alive(again));
  EXPECT_NE(again, registration);
  damage("w", "registration");
  embedded->run([&](kv::Transaction& tx) { registry.remove_any(tx, "role", "registration"); });
  EXPECT_TRUE(embedded->run([&](kv::Transaction& tx) { return registry.roles(tx).empty(); }));
}

TEST_F(WorkerObserver, AChangedTimeoutIsUsed) {
  const auto ref = add("w", seconds(3600));
  pass(seconds(60));
  EXPECT_EQ(add("w", seconds(1), ref.incarnation), ref);
  pass(seconds(2));
  EXPECT_FALSE(is_alive(ref));
}

// A store in which one read fails.
class FaultyStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    class Faulty final : public kv::ForwardingTransaction {
     public:
      Faulty(std::unique_ptr<kv::Transaction> inner, int& until_failure)
          : ForwardingTransaction(std::move(inner)), until_failure_(until_failure) {}
      std::optional<std::string> get(std::string_view key, kv::Isolation isolation) override {
        count();
        return ForwardingTransaction::get(key, isolation);
      }
      bool scan(const kv::KeyRange& range, const kv::RangeOptions& options,
                const kv::RowVisitor& visit) override {
        count();
        return ForwardingTransaction::scan(range, options, visit);
      }

     private:
      void count() {
        if (--until_failure_ == 0) throw kv::Error(kv::ErrorCode::io_error);
      }
      int& until_failure_;
    };
    return std::make_unique<Faulty>(inner().begin(), until_failure);
  }
  int until_failure = 0;
};

TEST_F(WorkerObserver, AfterAReadThatFailsAllAreObserved) {
  FaultyStore faulty(*embedded);
  Observer observer(faulty, registry, clock);
  observer.poll({}, [] {});
  int failures = 0;
  for (int n = 1; n < 20; ++n) {
    const auto ref = add("w", seconds(1));
    faulty.until_failure = n;
    try {
      observer.poll({}, [] {});
    } catch (const kv::Error&) { ++failures; }
    faulty.until_failure = 0;
    observer.poll({}, [] {});
    for (int i = 0; i < 4; ++i) {
      clock.advance(milliseconds(250));
      EXPECT_TRUE(observer.due());
      observer.poll({}, [] {});
    }
    EXPECT_FALSE(is_alive(ref)) << n;
  }
  EXPECT_GT(failures, 4);
}

TEST_F(WorkerObserver, WithoutWatchesItPolls) {
  kv::testing::UnwatchedStore unwatched(*embedded);
  Observer observer(unwatched, registry, clock);
  observer.poll({}, [] {});
  EXPECT_FALSE(observer.due());
  add("w", seconds(3600));
  clock.advance(observer.next() - clock.now());
  EXPECT_TRUE(observer.due());
  observer.poll({}, [] {});
  EXPECT_EQ(observer.next(), clock.now() + milliseconds(500));
}

TEST_F(WorkerObserver, AHeartbeatIsReadWhenItsIntervalOrTheTimeoutIsOver) {
  Observer observer(store, registry, clock);
  const auto ref = add("w", milliseconds(2'300));
  observer.poll({}, [] {});
  for (const int pause : {500, 500, 500, 500, 300}) {
    EXPECT_TRUE(is_alive(ref));
    EXPECT_EQ(observer.next() - clock.now(), milliseconds(pause));
    clock.advance(milliseconds(pause));
    EXPECT_TRUE(observer.due());
    observer.poll({}, [] {});
  }
  EXPECT_FALSE(is_alive(ref));
}

TEST_F(WorkerObserver, AHeartbeatThatIsDueSoonIsReadWithOneThatIsDue) {
  Observer observer(store, registry, clock);
  add("w1", seconds(15));
  observer.poll({}, [] {});
  clock.advance(milliseconds(100));
  add("w2", seconds(15));
  observer.poll({}, [] {});
  EXPECT_EQ(observer.next() - clock.now(), milliseconds(400));
  clock.advance(milliseconds(400));
  observer.poll({}, [] {});
  EXPECT_EQ(observer.next() - clock.now(), milliseconds(500));
}

TEST_F(WorkerObserver, WithoutWatchesAWorkerThatIsAddedWakesItsMonitor) {
  kv::testing::UnwatchedStore unwatched(*embedded);
  Monitor own(unwatched, registry, clock, rng);
  EXPECT_GT(own.step() - clock.now(), milliseconds(100));
  EXPECT_FALSE(own.woken());
  const auto worker = own.add("role", "own", "{}", milliseconds(300));
  EXPECT_TRUE(own.woken());
  EXPECT_LE(own.step() - clock.now(), milliseconds(100));
  EXPECT_FALSE(own.woken());
}

TEST_F(WorkerObserver, RolesThatCameAndWentCostNothing) {
  Observer observer(store, registry, clock);
  observer.poll({}, [] {});
  const auto cost_of_a_registration = [&] {
    const auto ref = add("w", seconds(15));
    store.rows_read = store.scans = 0;
    observer.poll({}, [] {});
    const int cost = store.rows_read + store.scans;
    embedded->run([&](kv::Transaction& tx) { registry.remove(tx, ref); });
    return cost;
  };
  const int before = cost_of_a_registration();
  for (int i = 0; i < 300; ++i) {
    embedded->run([&](kv::Transaction& tx) {
      const auto role = fmt::format("role{}", i);
      const auto first = registry.add(tx, role, "w", "{}"), second = registry.add(tx, role, "v", "{}");
      registry.remove(tx, second);
      registry.remove(tx, first);
    });
  }
  EXPECT_EQ(cost_of_a_registration(), before);
  EXPECT_TRUE(embedded->run([&](kv::Transaction& tx) { return registry.roles(tx); }).empty());
}

// Earlier versions of this program kept a row of every role.
TEST_F(WorkerObserver, RolesThatWereLeftEmptyAreRemoved) {
  const auto ref = add("w", seconds(15));
  for (const char* role : {"a", "role2", "z"}) {
    std::string key;
    kv::tuple::Packer(key).string("workers").string(role).string("vs");
    std::string value;
    kv::tuple::Packer(value).versionstamp(kv::Versionstamp::complete(std::string(10, '\1')));
    embedded->run([&](kv::Transaction& tx) { tx.set(key, value); });
  }
  EXPECT_EQ(embedded->run([&](kv::Transaction& tx) { return registry.roles(tx); }).size(), 4u);
  Observer observer(store, registry, clock);
  observer.poll({}, [] {});
  EXPECT_EQ(embedded->run([&](kv::Transaction& tx) { return registry.roles(tx); }),
            (std::vector<std::string>{"role"}));
  EXPECT_TRUE(is_alive(ref));
}

TEST_F(WorkerObserver, OfTwoRemovalsAtTheSameTimeOneConflicts) {
  const auto first = add("w1", seconds(15)), second = add("w2", seconds(15));
  auto late = embedded->begin();
  registry.remove(*late, first);
  embedded->run([&](kv::Transaction& tx) { registry.remove(tx, second); });
  EXPECT_THROW(late->commit(), kv::Error);
  embedded->run([&](kv::Transaction& tx) { registry.remove(tx, first); });
  EXPECT_TRUE(embedded->run([&](kv::Transaction& tx) { return registry.roles(tx); }).empty());
}

TEST_F(WorkerObserver, AWorkerThatIsAddedWhileTheLastOneIsRemovedKeepsTheRole) {
  const auto first = add("w1", seconds(15));
  auto late = embedded->begin();
  registry.remove(*late, first);
  add("w2", seconds(15));
  EXPECT_THROW(late->commit(), kv::Error);
  const auto version =
      embedded->run([&](kv::Transaction& tx) { return registry.members(tx, "role").version; });
  embedded->run([&](kv::Transaction& tx) { registry.remove(tx, first); });
  EXPECT_LT(version,
            embedded->run([&](kv::Transaction& tx) { return registry.members(tx, "role").version; }));
}

TEST_F(WorkerObserver, TheVersionOfARoleGrowsAlthoughItIsRemovedAndAddedAgain) {
  kv::Versionstamp last;
  const auto grows = [&] {
    const auto version =
        embedded->run([&](kv::Transaction& tx) { return registry.members(tx, "role").version; });
    EXPECT_LT(last, version);
    last = version;
  };
  for (int i = 0; i < 3; ++i) {
    const auto ref = add("w", seconds(15));
    grows();
    embedded->run([&](kv::Transaction& tx) { registry.remove(tx, ref); });
    grows();
  }
}

TEST_F(WorkerObserver, AProcessWhoseNodeIsNotRegisteredObservesAllClosely) {
  embedded->run([&](kv::Transaction& tx) {
    for (const char* node : {"n1", "n2", "n3"}) registry.add(tx, kNodeRole, node, "{}", seconds(3600));
  });
  const auto ref = add("w", seconds(4));
  Observer observer(store, registry, clock);
  for (int i = 0; i < 48; ++i) {
    if (i == 1) beat(ref);
    if (observer.due()) observer.poll({{std::string(kNodeRole), "lost", "none"}}, [] {});
    clock.advance(milliseconds(100));
  }
  EXPECT_FALSE(is_alive(ref));
}

// A store at which the process can be paused before or after it reads.
class PausingStore final : public kv::ForwardingDatabase {
 public:
  PausingStore(kv::Database& inner, ManualClock& clock) : ForwardingDatabase(inner), clock_(clock) {}
  std::unique_ptr<kv::Transaction> begin() override {
    clock_.advance(std::exchange(before_read, {}));
    return std::make_unique<Pausing>(*this, inner().begin());
  }
  Duration before_read{}, after_read{};

 private:
  class Pausing final : public kv::ForwardingTransaction {
   public:
    Pausing(PausingStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

   protected:
    std::string do_commit() override {
      auto stamp = ForwardingTransaction::do_commit();
      store_.clock_.advance(std::exchange(store_.after_read, {}));
      return stamp;
    }

   private:
    PausingStore& store_;
  };
  ManualClock& clock_;
};

struct PausedObserver : WorkerObserver {
  PausingStore pausing{*embedded, clock};
  Observer observer{pausing, registry, clock};
  WorkerRef ref = add("w", seconds(4));

  // Polls whenever a poll is due.
  void pass_polling(Duration duration) {
    for (const auto end = clock.now() + duration; observer.next() <= end;) {
      clock.advance(std::max(observer.next() - clock.now(), Duration()));
      observer.poll({}, [] {});
    }
  }
  // Pauses of 100 s of the observer, during a poll or between two.
  std::vector<std::function<void()>> pauses() {
    return {[this] { pausing.before_read = seconds(100); },  //
            [this] { pausing.after_read = seconds(100); },   //
            [this] { clock.advance(seconds(100)); }};
  }
};

// The worker has sent a heartbeat before the pause.
TEST_F(PausedObserver, DoesNotCountAPauseAsSilenceOfAWorkerThatSentAHeartbeat) {
  for (const auto& pause : pauses()) {
    pass_polling(seconds(2));
    beat(ref);
    clock.advance(observer.next() - clock.now());
    pause();
    observer.poll({}, [] {});
    observer.poll({}, [] {});
    pass_polling(seconds(4) - milliseconds(1));
    EXPECT_TRUE(is_alive(ref));
    beat(ref);
  }
}

// The whole machine is paused, including the worker, which then has the rest of its timeout.
TEST_F(PausedObserver, DoesNotCountAPauseAsSilenceOfAWorkerThatWasPausedToo) {
  for (const auto& pause : pauses()) {
    pass_polling(seconds(2));
    clock.advance(observer.next() - clock.now());
    pause();
    observer.poll({}, [] {});
    observer.poll({}, [] {});
    pass_polling(seconds(1));
    EXPECT_TRUE(is_alive(ref));
    beat(ref);
  }
}

TEST_F(PausedObserver, EvictsASilentWorkerNevertheless) {
  pass_polling(seconds(2));
  clock.advance(seconds(100));
  observer.poll({}, [] {});
  pass_polling(seconds(3));
  EXPECT_FALSE(is_alive(ref));
}

}  // namespace
}  // namespace divan::workers
