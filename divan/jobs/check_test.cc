#include "divan/jobs/check.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/history.h"
#include "divan/jobs/queue.h"
#include "divan/jobs/rows.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple.h"
#include "divan/workers/check.h"

namespace divan::jobs {
namespace {

using kv::testing::MapRows;
using testing::ElementsAre;
using testing::HasSubstr;

// A job in each state, and a worker.
struct JobsCheck : testing::Test {
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  workers::Registry registry{rng};
  Queue queue{registry, clock, rng};

  void SetUp() override {
    store->run([&](kv::Transaction& tx) { queue.set_type(tx, "mail", {}); });
    add("running");
    accept({});
    add("finished");
    const auto attempt = accept({}).attempt();
    store->run([&](kv::Transaction& tx) { finish(queue, tx, attempt); });
    const auto worker = store->run([&](kv::Transaction& tx) {
      const auto ref = registry.add(tx, "mailer", "host", "{}");
      registry.hold(tx, ref);
      return ref;
    });
    add("on-worker");
    AcceptOptions options;
    options.worker = worker;
    accept(options);
    add("pending");
    add("running");  // again
    store->run([&](kv::Transaction& tx) { queue.add(tx, "mail", "none", "{}"); });
    store->run([&](kv::Transaction& tx) { queue.add(tx, "mail", "small", R"({"n":1})"); });
    std::string large = "[1";
    for (int i = 0; i < 75'000; ++i) large += ",1";
    store->run([&](kv::Transaction& tx) { queue.add(tx, "mail", "large", large + ']'); });
  }
  void add(const std::string& id) {
    const std::string data = '"' + std::string(kMaxDataInHeader, 'x') + '"';
    store->run([&](kv::Transaction& tx) { queue.add(tx, "mail", id, data); });
  }
  AcceptedJob accept(const AcceptOptions& options) {
    const std::vector<std::string> types{"mail"};
    return store->run(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs.at(0); });
  }

  static kv::Findings check(MapRows& rows, kv::Version version = INT64_MAX) {
    kv::Findings findings;
    Check jobs(version, findings);
    workers::Check workers(version, findings);
    EXPECT_EQ(kv::testing::run_checks(rows, {&jobs, &workers}), 0u);
    return findings;
  }
  std::vector<std::string> without(const std::string& key) {
    MapRows rows(*store);
    EXPECT_EQ(rows.map().erase(key), 1u) << kv::tuple::describe(key);
    return check(rows).kept();
  }
  Job job(const std::string& id) {
    return store->run([&](kv::Transaction& tx) { return *read_job(tx, "mail", id); });
  }
};

TEST_F(JobsCheck, WrittenRowsAreConsistent) {
  MapRows rows(*store);
  EXPECT_THAT(check(rows, store->begin()->read_version()).kept(), ElementsAre());
}

TEST_F(JobsCheck, EveryMissingRowIsFound) {
  std::vector<std::string> names;
  for (const auto& key : kv::testing::unmissed_rows(*store, [](MapRows& rows) { return check(rows); }))
    names.push_back(kv::tuple::describe(key));
  // Without these the others are still consistent.
  EXPECT_THAT(
      names, ElementsAre(R"(("jobs", "types"))", R"(("jobs", "wake", "mail", 0))", R"(("workers", "", "vs"))",
                         R"(("workers", "mailer", "hold", "host"))", R"(("workers", "mailer", "vs"))"));
}

TEST_F(JobsCheck, InconsistentRowsAreNamed) {
  for (const char* id : {"pending", "running", "on-worker", "finished"}) {
    EXPECT_THAT(without(entry_key(job(id))),
                ElementsAre(HasSubstr(fmt::format("Job {} of type mail is ", id))));
  }
  EXPECT_THAT(without(JobKey("job").string("mail").string("pending").key()),
              ElementsAre("Jobs of type mail: the counter of state 0 is 4, but there are 3.",
                          "1 entries of the job queue belong to no job.",
                          "1 data of the job queue belong to no job."));
}

TEST_F(JobsCheck, DataAreCompleteAndJsonAndBelongToJobs) {
  const auto found = [&](const std::function<void(MapRows::Map&)>& damage) {
    MapRows rows(*store);
    damage(rows.map());
    return check(rows).kept();
  };
  const auto key = [](const char* kind, const char* id, int chunk) {
    return JobKey(kind).string("mail").string(id).integer(chunk).key();
  };
  EXPECT_THAT(without(key("data", "pending", 0)),
              ElementsAre("Job pending of type mail is pending and lacks some of its data."));
  EXPECT_THAT(
      without(key("next", "running", 0)),
      ElementsAre("Job running of type mail is running and lacks some of the data for its next run."));
  EXPECT_THAT(found([&](auto& map) { map[key("data", "nobody", 0)] = "{}"; }),
              ElementsAre("1 data of the job queue belong to no job."));
  EXPECT_THAT(found([&](auto& map) { map[key("data", "pending", 0)] = "{]"; }),
              ElementsAre(HasSubstr("the data of a job is not JSON")));
  EXPECT_THAT(found([&](auto& map) { map.erase(key("data", "large", 0)); }),
              testing::Contains(HasSubstr("the chunk before this one is missing")));
  EXPECT_THAT(without(key("data", "large", 1)),
              testing::IsSupersetOf<testing::Matcher<std::string>>(
                  {HasSubstr("the data of a job is not JSON"),
                   "Job large of type mail is pending and lacks some of its data."}));
  EXPECT_THAT(found([&](auto& map) { map[key("data", "none", 0)] = "{}"; }),
              ElementsAre("1 data of the job queue belong to no job."));
  EXPECT_THAT(without(JobKey("type").string("mail").key()),
              ElementsAre("There are jobs of type mail, which is not declared."));
}

TEST_F(JobsCheck, SmallDataAreInTheHeaderOfWhichThePendingJobHasACopy) {
  const Job small = job("small");
  EXPECT_EQ(small.data, R"({"n":1})");
  EXPECT_EQ(small.data_chunks, 0);
  const std::string header = JobKey("job").string("mail").string("small").key(), entry = entry_key(small);
  MapRows rows(*store);
  EXPECT_EQ(rows.map().at(entry), rows.map().at(header));
  const auto change = [](std::string& row) { row.replace(row.find("n"), 1, "m"); };
  change(rows.map().at(entry));
  EXPECT_THAT(
      check(rows).kept(),
      ElementsAre("Job small of type mail is pending, and the copy of its header in its entry differs."));
  change(rows.map().at(header));
  EXPECT_THAT(check(rows).kept(), ElementsAre());
  for (const auto& key : {entry, header}) rows.map().at(key).replace(rows.map().at(key).find("{"), 1, "[");
  EXPECT_THAT(check(rows).kept(), testing::Contains(HasSubstr("the data in the header are not JSON")));
  // As an older version wrote it.
  MapRows older(*store);
  older.map().at(entry).clear();
  EXPECT_THAT(check(older).kept(), ElementsAre());
}

TEST_F(JobsCheck, DamagedRowsAreFound) {
  MapRows rows(*store);
  const auto original = rows.map();
  std::vector<std::string> unnoticed;
  for (const auto& [key, value] : original) {
    for (const auto& changed : {value + 'x', "x" + value}) {
      rows.map()[key] = changed;
      if (check(rows).count() == 0) unnoticed.push_back(kv::tuple::describe(key));
    }
    rows.map()[key] = value;
  }
  EXPECT_THAT(unnoticed, ElementsAre());
  rows.map()[JobKey("nonsense").key()] = "";
  EXPECT_EQ(check(rows).count(), 1u);
  rows.map() = original;
  // Shards of a counter whose sum overflows.
  for (const int shard : {1, 2}) {
    const auto key = JobKey("cnt").string("mail").integer(0).integer(shard).key();
    rows.map()[key] = std::string(7, '\xff') + '\x7f';
  }
  EXPECT_THAT(check(rows).kept(), testing::Contains(HasSubstr("malformed counter")));
}

TEST_F(JobsCheck, CountsOfAJobAreWithinTheirLimits) {
  MapRows rows(*store);
  std::size_t tried = 0;
  for (const auto& [key, value] : rows.map()) {
    kv::tuple::Reader reader(key);
    if (reader.take_string() != "jobs" || reader.take_string() != "job") continue;
    const auto type = *reader.take_string(), id = *reader.take_string();
    const Job job = decode_job(type, id, value);
    if (job.activity) continue;
    ++tried;
    const auto end_of_header = [&](std::int64_t history) {
      std::string end;
      kv::tuple::Packer(end).integer(history).string(job.data).string(job.next_data);
      return end;
    };
    const std::string last = end_of_header(job.history);
    ASSERT_TRUE(value.ends_with(last));
    for (const std::int64_t history :
         {std::int64_t{0}, kMaxHistory, std::int64_t{-1}, kMaxHistory + 1, INT64_MAX}) {
      const std::string changed = value.substr(0, value.size() - last.size()) + end_of_header(history);
      if (history >= 0 && history <= kMaxHistory) {
        EXPECT_EQ(decode_job(type, id, changed).history, history);
      } else {
        EXPECT_THROW(decode_job(type, id, changed), Error);
      }
    }
  }
  EXPECT_GT(tried, 0u);
}

TEST_F(JobsCheck, VersionstampsDoNotExceedTheStoresVersion) {
  MapRows rows(*store);
  EXPECT_GT(check(rows, 1).count(), 0u);
}

// In addition: jobs that have ended in every way, with results, settings of their own, deadlines and former
// attempts, and a worker with a pending halt.
struct JobsCheckMore : JobsCheck {
  template <class Fn>
  auto in_tx(Fn&& fn) {
    return store->run(std::forward<Fn>(fn));
  }
  void SetUp() override {
    JobsCheck::SetUp();
    const auto ref = in_tx([&](kv::Transaction& tx) {
      TypeSettings settings;
      settings.max_runtime = std::chrono::hours(1);
      queue.set_type(tx, "long", settings);
      const auto worker = registry.add(tx, "mailer", "other", "{}");
      registry.hold(tx, worker);
      return worker;
    });
    const std::vector<std::string> types{"long"};
    const auto run = [&](const std::string& id, const std::string& limits = {}) {
      return in_tx([&](kv::Transaction& tx) {
        queue.add(tx, "long", id, "{}", {.limits = limits});
        return tx.read_version();
      });
    };
    const auto accept_one = [&] {
      AcceptOptions options;
      options.worker = ref;
      return in_tx(
          [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, options).jobs.at(0).attempt(); });
    };
    run("overdue", job_limits(R"({"max_attempts":1})"));
    accept_one();
    in_tx([&](kv::Transaction& tx) {
      Job job = *read_job(tx, "long", "overdue");
      end_overdue(queue, tx, job);
    });
    run("broken");
    const auto broken = accept_one();
    in_tx([&](kv::Transaction& tx) { fail(queue, tx, broken, "on purpose", {.retry = false}); });
    run("resulted");
    const auto resulted = accept_one();
    in_tx([&](kv::Transaction& tx) {
      finish(queue, tx, resulted, std::nullopt, std::nullopt, R"({"sum":1})");
    });
    run("cancelled");
    in_tx([&](kv::Transaction& tx) { queue.cancel(tx, "long", "cancelled"); });
    run("released", job_limits(R"({"max_lost":3})"));
    const auto released = accept_one();
    in_tx([&](kv::Transaction& tx) { release(queue, tx, released); });
    accept_one();
  }
};

TEST_F(JobsCheckMore, WrittenRowsAreConsistent) {
  MapRows rows(*store);
  EXPECT_THAT(check(rows, store->begin()->read_version()).kept(), ElementsAre());
}

TEST_F(JobsCheckMore, EveryMissingRowIsFound) {
  std::set<std::string> names;
  for (const auto& key : kv::testing::unmissed_rows(*store, [](MapRows& rows) { return check(rows); })) {
    kv::tuple::Reader reader(key);
    std::string name = *reader.take_string();
    for (int i = 0; i < 2; ++i) name += " " + reader.take_string().value_or("");
    names.insert(name);
  }
  // Without these the others are still consistent; a missing counter is 0.
  EXPECT_THAT(names,
              ElementsAre("jobs cnt long", "jobs halt mailer", "jobs types ", "jobs wake long",
                          "jobs wake mail", "workers  vs", "workers mailer hold", "workers mailer vs"));
}

TEST_F(JobsCheckMore, DamagedRowsAreFound) {
  MapRows rows(*store);
  const auto original = rows.map();
  std::vector<std::string> unnoticed;
  for (const auto& [key, value] : original) {
    for (const auto& changed : {value + 'x', "x" + value, value.substr(0, value.size() / 2)}) {
      if (changed == value) continue;
      rows.map()[key] = changed;
      if (check(rows).count() == 0) unnoticed.push_back(kv::tuple::describe(key));
    }
    rows.map()[key] = value;
  }
  EXPECT_THAT(unnoticed, ElementsAre());
}

TEST_F(JobsCheckMore, EpochsDoNotExceedTheStoresVersion) {
  const auto version = store->begin()->read_version();
  MapRows rows(*store);
  std::string& header = rows.map()[JobKey("job").string("long").string("broken").key()];
  auto elements = kv::tuple::unpack(header);
  elements.at(8) = version + 1;  // the epoch (docs/keyspace.md)
  header = kv::tuple::pack(elements);
  EXPECT_THAT(check(rows, version).kept(), ElementsAre(HasSubstr("is greater than the store's version")));
}

}  // namespace
}  // namespace divan::jobs
