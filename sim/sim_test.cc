#include "divan/base/log.h"
#include "divan/base/mutex.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/rows.h"
#include "sim/cluster.h"
#include "sim/scenario.h"

namespace divan::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A world with one process, for one task.
struct Worlds : testing::Test {
  World world{1};
  Process& process = new_process("p");

  Process& new_process(const std::string& name) {
    Process& made = world.add_process(name);
    made.clock = std::make_unique<SimClock>(world, hours(3), 0, 1.0);
    made.rng = std::make_unique<SeededRng>(world.rng().next());
    return made;
  }
  double now() { return std::chrono::duration<double>(world.now().time_since_epoch()).count(); }
};

TEST_F(Worlds, TimePassesOnlyWhileAllWait) {
  std::vector<double> times;
  world.spawn(&process, "slow", [&] {
    process.clock->sleep(hours(1));
    times.push_back(now());
  });
  world.spawn(nullptr, "quick", [&] {
    world.pause(seconds(2));
    times.push_back(now());
  });
  world.run();
  EXPECT_EQ(times, (std::vector<double>{2, 3600}));
}

TEST_F(Worlds, AWaitEndsWithItsConditionOrItsDeadline) {
  Mutex mutex{MutexRank::last, "test"};
  ConditionVariable changed;
  bool done = false;
  world.spawn(&process, "waits", [&] {
    std::unique_lock lock(mutex);
    const Clock& clock = *process.clock;
    EXPECT_FALSE(clock.wait_until(lock, changed, clock.now() + seconds(1), [&] { return done; }));
    EXPECT_EQ(now(), 1);
    EXPECT_TRUE(clock.wait_until(lock, changed, MonotonicTime::max(), [&] { return done; }));
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_EQ(now(), 5);
  });
  world.spawn(nullptr, "sets", [&] {
    world.pause(seconds(5));
    std::lock_guard lock(mutex);
    done = true;
  });
  world.run();
  EXPECT_EQ(world.failure(), "");
}

TEST_F(Worlds, ACrashUnwindsWhatWaits) {
  bool went_on = false;
  const auto memory = std::make_shared<int>(1);
  world.spawn(&process, "victim", [&went_on, this, memory] {
    try {
      world.pause(seconds(10));
    } catch (const std::exception&) { went_on = true; }
    went_on = true;
  });
  world.spawn(nullptr, "killer", [&] {
    world.pause(seconds(1));
    world.crash(process);
    world.wait(nullptr, MonotonicTime::max(), [&] { return world.tasks_of(process) == 0; });
    EXPECT_EQ(now(), 1);
  });
  world.run();
  EXPECT_FALSE(went_on);
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(Worlds, AFrozenProcessGoesOnLater) {
  double woke = 0;
  world.spawn(&process, "sleeper", [&] {
    world.pause(seconds(10));
    woke = now();
  });
  world.spawn(nullptr, "freezer", [&] {
    world.pause(seconds(5));
    world.freeze(process, seconds(30));
  });
  world.run();
  EXPECT_EQ(woke, 35);
}

TEST_F(Worlds, TasksThatWaitForEachOtherAreAFailure) {
  world.spawn(nullptr, "stuck", [&] { world.wait(nullptr, MonotonicTime::max(), [] { return false; }); });
  world.run();
  EXPECT_EQ(world.failure(), "All tasks wait for each other.");
}

TEST_F(Worlds, WritesAreMadeOnceWhateverTheStoreAnswers) {
  Cluster cluster(world);
  cluster.engine.faults.unknown_done = 300'000;
  cluster.engine.faults.unknown_undone = 100'000;
  cluster.engine.faults.unknown_late = 200'000;
  cluster.engine.faults.conflict = 200'000;
  cluster.engine.faults.too_old = 50'000;
  world.spawn(&process, "writer", [&] {
    Store store(cluster.engine, process);
    for (int i = 0; i < 200; ++i) store.run([](kv::Transaction& tx) { tx.add("counter", 1); });
  });
  world.run();
  EXPECT_EQ(world.failure(), "");
  EXPECT_EQ(kv::decode_counter(std::string_view(cluster.observer.rows().at("counter"))), 200);
  EXPECT_GT(world.counts().at("fault: unknown, committed"), 10);
  EXPECT_GT(world.counts().at("fault: unknown, not committed"), 10);
  EXPECT_GT(world.counts().at("late commits refused"), 10);
  EXPECT_GT(world.counts().at("late commits made"), 1);
}

TEST_F(Worlds, TheStoreOfACrashedProcessDoesNothing) {
  Cluster cluster(world);
  struct Memory {
    ~Memory() {
      EXPECT_THROW(store.run([](kv::Transaction& tx) { tx.set("late", "1"); }), kv::Error);
    }
    Store& store;
  };
  Store store(cluster.engine, process);
  world.spawn(&process, "victim", [&] {
    Memory memory{store};
    world.crash(process);
    store.run([](kv::Transaction& tx) { tx.set("late", "1"); });
  });
  world.run();
  EXPECT_TRUE(cluster.observer.rows().empty());
}

// What each invariant is there for: a job that somebody has tampered with.
struct Tampering : Worlds {
  Cluster cluster{world};
  Tampering() {
    cluster.plan.types = {"mail"};
    cluster.jobs.declare("mail", {});
    cluster.plan.settings["mail"] = {};
  }
  // Adds a job, and accepts it if asked to, then does `fn`; answers what the invariants say.
  std::string failure_of(bool accept,
                         const std::function<void(Base&, kv::Transaction&, const jobs::Job&)>& fn) {
    world.spawn(&process, "tampers", [&, accept] {
      Base base(cluster, process);
      base.store.run([&](kv::Transaction& tx) { base.queue.set_type(tx, "mail", {}); });
      Step step{.kind = Step::Kind::add, .type = "mail", .id = "a", .data = "{}"};
      base.perform(step, [&](kv::Transaction& tx) { base.queue.add(tx, "mail", "a", "{}"); });
      if (accept) {
        base.store.run([&](kv::Transaction& tx) { jobs::accept(base.queue, tx, cluster.plan.types, {}); });
      }
      base.store.run([&](kv::Transaction& tx) { fn(base, tx, *base.queue.find(tx, "mail", "a")); });
    });
    world.run();
    return world.failure();
  }
};

TEST_F(Tampering, NothingIsNoFailure) {
  EXPECT_EQ(failure_of(true, [](Base&, kv::Transaction&, const jobs::Job&) {}), "");
}

TEST_F(Tampering, AJobWithoutItsEntry) {
  EXPECT_THAT(failure_of(false,
                         [](Base&, kv::Transaction& tx, const jobs::Job&) {
                           tx.clear_range(jobs::JobKey("pend").string("mail").range());
                         }),
              testing::HasSubstr("has not the entry"));
}

TEST_F(Tampering, ACountThatIsWrong) {
  EXPECT_THAT(
      failure_of(
          false,
          [](Base& base, kv::Transaction& tx, const jobs::Job& job) {
            jobs::unlink(tx, job);
            jobs::link(tx, job);
            tx.add(jobs::count_key("mail", jobs::State::failed), 1);
            note(tx,
                 {.kind = Step::Kind::resubmit, .token = base.cluster.token(), .type = "mail", .id = "a"});
          }),
      testing::HasSubstr("the store counts"));
}

TEST_F(Tampering, AnEndWithoutAnAttempt) {
  EXPECT_THAT(
      failure_of(
          false,
          [](Base& base, kv::Transaction& tx, const jobs::Job&) {
            note(tx, {.kind = Step::Kind::finish, .token = base.cluster.token(), .type = "mail", .id = "a"});
          }),
      testing::HasSubstr("by an attempt that has lost it"));
}

TEST_F(Tampering, AJobTakenFromALivingAttempt) {
  EXPECT_THAT(failure_of(true,
                         [](Base& base, kv::Transaction& tx, const jobs::Job& job) {
                           jobs::Job taken = job;
                           jobs::reclaim(base.queue, tx, taken, jobs::Outcome::lost);
                         }),
              testing::HasSubstr("before its timeout"));
}

TEST_F(Tampering, AJobThatRunsWhereNoMoreMay) {
  EXPECT_THAT(failure_of(true,
                         [](Base& base, kv::Transaction&, const jobs::Job&) {
                           base.store.run([&](kv::Transaction& limiting) {
                             base.queue.set_type(limiting, "mail", {.max_running = 1});
                           });
                           base.add_job("mail");
                           base.store.run([&](kv::Transaction& accepting) {
                             jobs::Job job = list_jobs(base.queue, accepting, "mail",
                                                       {.state = jobs::State::pending, .limit = 1})
                                                 .jobs.at(0);
                             jobs::transition(accepting, job, [&](jobs::Job& changed) {
                               changed.state = jobs::State::running;
                               changed.lock = "lock";
                               changed.epoch = accepting.read_version();
                               changed.attempt = 1;
                               changed.started_at = base.process.clock->wall_ms();
                             });
                           });
                         }),
              testing::HasSubstr("2 run where 1 may"));
}

TEST_F(Tampering, AnEffectThatNoRunHad) {
  EXPECT_THAT(failure_of(true,
                         [](Base& base, kv::Transaction& tx, const jobs::Job& job) {
                           jobs::finish(base.queue, tx, {"mail", "a", job.lock});
                           tx.add(effect_key("mail", "a"), 2);
                           note(tx, {.kind = Step::Kind::finish,
                                     .token = base.cluster.token(),
                                     .type = "mail",
                                     .id = "a",
                                     .lock = job.lock});
                         }),
              testing::HasSubstr("not written once"));
}

// Finishes the job in good order.
void finish(Base& base, const jobs::Job& job) {
  Step step{.kind = Step::Kind::finish, .type = job.type, .id = job.id, .lock = job.lock};
  base.perform(step, [&](kv::Transaction& tx) {
    jobs::finish(base.queue, tx, {job.type, job.id, job.lock});
    tx.add(effect_key(job.type, job.id), 1);
  });
}

TEST_F(Tampering, AJobThatRunsBeforeItsTime) {
  EXPECT_THAT(
      failure_of(false,
                 [](Base& base, kv::Transaction&, const jobs::Job&) {
                   const auto later = base.process.clock->wall_ms() + 60'000;
                   Step step{.kind = Step::Kind::resubmit, .type = "mail", .id = "a", .scheduled_at = later};
                   base.perform(step,
                                [&](kv::Transaction& tx) { base.queue.resubmit(tx, "mail", "a", later); });
                   base.store.run([&](kv::Transaction& tx) {
                     jobs::accept(base.queue, tx, base.cluster.plan.types, {.max_scheduled_at = later});
                   });
                 }),
      testing::HasSubstr("accepted before it was due"));
}

TEST_F(Tampering, AFailureWithoutAPause) {
  EXPECT_THAT(failure_of(true,
                         [](Base& base, kv::Transaction& tx, const jobs::Job& job) {
                           jobs::fail(base.queue, tx, {"mail", "a", job.lock}, "broken");
                           jobs::Job at_once = *base.queue.find(tx, "mail", "a");
                           jobs::transition(tx, at_once, [&](jobs::Job& changed) {
                             jobs::make_pending(changed, 0, base.process.clock->wall_ms());
                           });
                           note(tx, {.kind = Step::Kind::fail,
                                     .token = base.cluster.token(),
                                     .type = "mail",
                                     .id = "a",
                                     .lock = job.lock});
                         }),
              testing::HasSubstr("it is due at"));
}

TEST_F(Tampering, AnAttemptThatIsNotCounted) {
  EXPECT_THAT(failure_of(true,
                         [](Base&, kv::Transaction& tx, const jobs::Job& job) {
                           jobs::Job changed = job;
                           jobs::transition(tx, changed, [](jobs::Job& row) { row.attempt = 0; });
                         }),
              testing::HasSubstr("attempts are not counted"));
}

TEST_F(Tampering, DataThatNobodyGave) {
  EXPECT_THAT(failure_of(true,
                         [](Base&, kv::Transaction& tx, const jobs::Job& job) {
                           jobs::Job changed = job;
                           jobs::transition(tx, changed,
                                            [&](jobs::Job& row) { jobs::write_data(tx, row, R"({"a":1})"); });
                         }),
              testing::HasSubstr("its data are not"));
}

TEST_F(Tampering, DataOfAJobThatIsGone) {
  EXPECT_THAT(
      failure_of(
          false,
          [](Base& base, kv::Transaction& tx, const jobs::Job& job) {
            jobs::unlink(tx, job);
            tx.set(jobs::chunk_key(job, jobs::DataSlot::current, 0), "{}");
            note(tx, {.kind = Step::Kind::remove, .token = base.cluster.token(), .type = "mail", .id = "a"});
          }),
      testing::HasSubstr("data of it are left"));
}

TEST_F(Tampering, AJobThatIsPrunedTooEarly) {
  EXPECT_THAT(
      failure_of(true,
                 [](Base& base, kv::Transaction&, const jobs::Job& job) {
                   finish(base, job);
                   EXPECT_EQ(base.cluster.jobs.kept_too_long(base.process.clock->wall_ms() + 23 * 3'600'000),
                             std::nullopt);
                   EXPECT_NE(base.cluster.jobs.kept_too_long(base.process.clock->wall_ms() + 25 * 3'600'000),
                             std::nullopt);
                   base.store.run(
                       [&](kv::Transaction& tx) { jobs::unlink(tx, *base.queue.find(tx, "mail", "a")); });
                 }),
      testing::HasSubstr("pruned before its retention"));
}

TEST_F(Tampering, AnEndAtAnotherTime) {
  EXPECT_THAT(failure_of(true,
                         [](Base& base, kv::Transaction& tx, const jobs::Job& job) {
                           finish(base, job);
                           jobs::Job changed = *base.queue.find(tx, "mail", "a");
                           jobs::transition(tx, changed, [](jobs::Job& row) { row.finished_at -= 1000; });
                         }),
              testing::HasSubstr("as the time at which it ended"));
}

TEST_F(Tampering, AWorkerWithoutAHeartbeat) {
  EXPECT_THAT(failure_of(false,
                         [](Base& base, kv::Transaction& tx, const jobs::Job&) {
                           base.registry.add(tx, "role", "w", "{}");
                           std::string key;
                           kv::tuple::Packer(key).string("workers").string("role").string("hb").string("w");
                           tx.clear(key);
                         }),
              testing::HasSubstr("a row but no heartbeat"));
}

TEST_F(Tampering, AWorkerThatIsEvictedWithoutASilence) {
  EXPECT_THAT(
      failure_of(false,
                 [](Base& base, kv::Transaction&, const jobs::Job&) {
                   base.store.run([&](kv::Transaction& tx) { base.registry.add(tx, "role", "w", "{}"); });
                   base.store.run([&](kv::Transaction& tx) { base.registry.remove_any(tx, "role", "w"); });
                 }),
      testing::HasSubstr("evicted before its timeout"));
}

TEST(Simulation, TheSameSeedGivesTheSameHistory) {
  // Evictions and the like are what these worlds are about.
  log::set_level(log::Level::off);
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome first = run_seed(seed);
    const Outcome second = run_seed(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << seed;
    EXPECT_EQ(first.steps, second.steps) << seed;
    EXPECT_EQ(first.last_lines, second.last_lines) << seed;
    hashes.insert(first.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 5u);
  log::set_level(log::Level::warning);
}

}  // namespace
}  // namespace divan::sim
