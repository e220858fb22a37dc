#include <fmt/core.h>
#include <gmock/gmock.h>

#include "divan/base/log.h"
#include "divan/base/mutex.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/index/views/rows.h"
#include "divan/index/views/view_batch.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/rows.h"
#include "divan/updates/sequencer.h"
#include "sim/cluster.h"
#include "sim/scenario.h"

namespace divan::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A world with one process, for one task.
struct Worlds : testing::Test {
  // Evictions and power cuts are what these worlds are about.
  Worlds() { log::set_level(log::Level::off); }
  ~Worlds() override { log::set_level(log::Level::warning); }

  World world{1};
  Process& process = new_process("p");

  Process& new_process(const std::string& name) {
    Process& made = world.add_process(name);
    made.clock = std::make_unique<SimClock>(world, hours(3), 0, 1.0);
    made.rng = std::make_unique<SeededRng>(world.rng().next());
    return made;
  }
  double now() const { return std::chrono::duration<double>(world.now().time_since_epoch()).count(); }
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
    world.wait(nullptr, MonotonicTime::max(), [&] { return process.tasks == 0; });
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

TEST_F(Worlds, ATaskMayWaitWhileItHandlesAnException) {
  std::vector<std::string> rethrown;
  for (const std::string name : {"first", "second"}) {
    world.spawn(&process, name, [&, name] {
      try {
        try {
          throw std::runtime_error("of " + name);
        } catch (const std::exception&) {
          world.pause(seconds(name == "first" ? 1 : 2));
          throw;
        }
      } catch (const std::exception& error) { rethrown.push_back(name + " has that " + error.what()); }
    });
  }
  world.run();
  EXPECT_THAT(rethrown, testing::ElementsAre("first has that of first", "second has that of second"));
}

TEST_F(Worlds, TasksThatWaitForEachOtherAreAFailure) {
  world.spawn(nullptr, "stuck", [&] { world.wait(nullptr, MonotonicTime::max(), [] { return false; }); });
  world.run();
  EXPECT_EQ(world.failure(), "All tasks wait for each other.");
}

TEST_F(Worlds, WritesAreMadeOnceUnderAllFaults) {
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

TEST_F(Worlds, TheEmbeddedStoreKeepsWhatWasCommittedWhenThePowerFails) {
  Cluster cluster(world);
  Engine& engine = cluster.engine;
  engine.embed(process, cluster.engine_rng);
  engine.faults.power_cut = 200'000;
  std::int64_t made = 0;
  world.spawn(nullptr, "machine", [&] {
    for (int round = 0; round < 10; ++round) {
      process.alive = true;
      ++process.incarnation;
      world.spawn(&process, "writer", [&] {
        Store store(engine, process);
        for (int i = 0; i < 30; ++i) {
          store.run([](kv::Transaction& tx) { tx.add("counter", 1); });
          ++made;
        }
      });
      world.wait(nullptr, MonotonicTime::max(), [&] { return process.tasks == 0; });
      engine.embedded->restart(300'000);
      cluster.observer.check_restarted();
    }
  });
  world.run();
  EXPECT_EQ(world.failure(), "");
  EXPECT_GE(kv::decode_counter(std::string_view(cluster.observer.rows().at("counter"))), made);
  std::int64_t cuts = 0;
  for (const auto& [what, count] : world.counts()) cuts += what.starts_with("power cut: ") ? count : 0;
  EXPECT_GT(cuts, 3);
}

// Shows that each invariant notices a job that was tampered with.
struct Tampering : Worlds {
  Cluster cluster{world};
  Tampering() {
    cluster.plan.types = {"mail"};
    cluster.jobs.declare("mail", {});
    cluster.plan.settings["mail"] = {};
  }
  // Adds a job, and accepts it if asked to, then runs `fn`. Returns the failure of an invariant.
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
              testing::HasSubstr("lacks the entry"));
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

TEST_F(Tampering, DataThatWasNotWritten) {
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

// The same for databases: one with a document, and a view of it that is up to date.
struct TamperingWithDatabases : Worlds {
  Cluster cluster{world};
  events::Bus bus;
  docs::Catalog catalog{bus, *process.clock};

  void write(kv::Transaction& tx, const docs::Database& database, const std::string& id, std::string body) {
    docs::Writer writer(tx, database);
    docs::IncomingDocument document;
    document.id = id;
    document.body = std::move(body);
    const auto result = writer.edit(document);
    writer.finish();
    note(tx, Edit{cluster.token(), database.number(), id, result.revision, {}, false, false, document.body});
  }
  using Work = std::function<void(kv::Transaction&, const docs::Database&)>;
  // Runs these, each in a transaction. Returns the failure of an invariant.
  std::string failure_of(const std::vector<Work>& works) {
    world.spawn(&process, "tampers", [&] {
      Store store(cluster.engine, process);
      updates::Sequencer sequencer(store, catalog, *process.clock);
      const auto run = [&](const auto& work) {
        store.run([&](kv::Transaction& tx) { work(tx, catalog.open(tx, "a")); });
      };
      store.run([&](kv::Transaction& tx) {
        note(tx, Lifecycle{cluster.token(), catalog.create(tx, "a").number(), "a", true});
      });
      run([&](auto& tx, const auto& database) { write(tx, database, "_design/d", design_body(0)); });
      run([&](auto& tx, const auto& database) { write(tx, database, "doc", R"({"k":1})"); });
      EXPECT_NE(cluster.indexes.behind(), std::nullopt);
      run([&](auto& tx, const auto& database) {
        const auto document = docs::find_document(tx, database, "doc", std::nullopt);
        const auto json = fmt::format(R"({{"_rev":"{}","k":1}})", document.revision().revision().to_string());
        index::views::ViewBatch batch(1);
        batch.add_document("doc");
        for (const auto& [key, value] : emitted(0, json)) batch.add_row(0, 0, key, value);
        const index::IndexKeys keys(database, signature_of(0));
        batch.prepare(store, keys, 0, {});
        batch.write(tx, keys);
        index::write_sequence(tx, keys, docs::last_sequence(tx, database));
      });
      EXPECT_EQ(cluster.indexes.behind(), std::nullopt);
      for (const auto& work : works) run(work);
    });
    world.run();
    return world.failure();
  }
};

TEST_F(TamperingWithDatabases, NothingIsNoFailure) {
  EXPECT_EQ(failure_of({}), "");
  EXPECT_EQ(world.counts().at("indexes compared with a build from nothing"), 1);
}

TEST_F(TamperingWithDatabases, AnEditThatIsNoEdit) {
  EXPECT_THAT(failure_of({[&](auto& tx, const auto& database) {
                note(tx, Edit{cluster.token(), database.number(), "other", {1, "x"}, {}, false, false, "{}"});
              }}),
              testing::HasSubstr("0 documents of a are new among its changes, but 1"));
}

TEST_F(TamperingWithDatabases, AChangeThatIsLost) {
  EXPECT_THAT(failure_of({[](auto& tx, const auto& database) {
                tx.clear_range(kv::below(database.keys().section(docs::Section::changes)));
              }}),
              testing::HasSubstr("rows of changes"));
}

TEST_F(TamperingWithDatabases, ADatabaseThatIsGoneAndHasRows) {
  EXPECT_THAT(failure_of({[&](auto& tx, const auto& database) {
                catalog.remove(tx, "a");
                tx.set(database.keys().stat("docs"), "");
                note(tx, Lifecycle{cluster.token(), database.number(), "a", false});
              }}),
              testing::HasSubstr("was deleted, and has rows"));
}

TEST_F(TamperingWithDatabases, ARowThatIsLostFromAView) {
  const auto clear_rows = [](kv::Transaction& tx, const docs::Database& database) {
    const index::IndexKeys keys(database, signature_of(0));
    tx.clear_range(keys.all());
  };
  const auto write_sequence = [](kv::Transaction& tx, const docs::Database& database) {
    index::write_sequence(tx, index::IndexKeys(database, signature_of(0)), docs::last_sequence(tx, database));
  };
  EXPECT_THAT(failure_of({clear_rows, write_sequence}), testing::HasSubstr("lacks the row"));
}

TEST_F(TamperingWithDatabases, ABatchOfAnAttemptThatHasLostTheJob) {
  EXPECT_THAT(failure_of({[&](auto& tx, const auto&) {
                note(tx, AttemptNote{"views", "job", "lock"}, cluster.token());
              }}),
              testing::HasSubstr("does not have the job"));
}

TEST_F(TamperingWithDatabases, AChangeThatAReaderHasMissed) {
  EXPECT_THAT(failure_of({[&](auto&, const auto& database) {
                ChangesReader reader{.database = database.number()};
                cluster.databases.check_reader(reader, "a", INT64_MAX);
              }}),
              testing::HasSubstr("has missed"));
}

TEST_F(TamperingWithDatabases, AnUpdateWithoutAMark) {
  EXPECT_THAT(failure_of({[&](auto& tx, const auto&) {
                std::string marks;
                kv::tuple::Packer(marks).string("updates").string("dirty");
                tx.clear_range(kv::below(marks));
              }}),
              testing::HasSubstr("neither a row of the feed nor a mark"));
}

TEST_F(TamperingWithDatabases, AnUpdateThatIsMissingInTheFeed) {
  EXPECT_EQ(
      failure_of({[&](auto&, const auto&) { EXPECT_EQ(cluster.databases.missing_of({}), "created of a"); }}),
      "");
}

TEST(Simulation, TheSameSeedGivesTheSameHistory) {
  log::set_level(log::Level::off);
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Outcome first = run_seed(seed);
    const Outcome second = run_seed(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << seed;
    EXPECT_EQ(first.steps, second.steps) << seed;
    EXPECT_EQ(first.last_lines, second.last_lines) << seed;
    hashes.insert(first.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 12u);
  log::set_level(log::Level::warning);
}

}  // namespace
}  // namespace divan::sim
