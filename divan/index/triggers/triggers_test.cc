#include <fmt/core.h>

#include "divan/docs/purge.h"
#include "divan/docs/sequence.h"
#include "divan/index/triggers/check.h"
#include "divan/index/triggers/state.h"
#include "divan/index/triggers/trigger_kind.h"
#include "divan/index/unused.h"
#include "divan/index/views/views_testing.h"
#include "divan/jobs/listing.h"

namespace divan::index::triggers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct TriggersTest : views::testing::IndexFixture {
  jobs::Acceptor acceptor{queue, *store, clock};
  std::string design_revision;

  void SetUp() override {
    catalog.on_design_winner(update_triggers);
    set_up(std::make_unique<TriggerKind>(Jobs{queue, &acceptor}, pool), 7);
    store->run([&](kv::Transaction& tx) { queue.set_type(tx, "mail", {}); });
  }

  void define(const std::string& triggers) {
    const std::string rev = design_revision.empty() ? "" : R"("_rev":")" + design_revision + "\",";
    design_revision = put(R"({"_id":"_design/t",)" + rev + R"("triggers":)" + triggers + "}");
  }
  // A trigger `t` that adds jobs whose ids begin with `prefix`.
  void define_with(const std::string& prefix, const std::string& more = "") {
    define(R"({"t":{"job":{"type":"mail","id":")" + prefix + R"({_id}"})" + more + "}}");
  }

  IndexKeys keys() {
    return store->run([&](kv::Transaction& tx) {
      return IndexKeys(catalog.open(tx, "db"), trigger_signature("_design/t", "t"));
    });
  }
  std::vector<jobs::Job> all_jobs() {
    return store->run(
        [&](kv::Transaction& tx) { return list_jobs(queue, tx, "mail", {.limit = 1000}).jobs; });
  }
  std::vector<std::string> ids() {
    std::vector<std::string> ids;
    for (const auto& job : all_jobs()) ids.push_back(job.id);
    std::ranges::sort(ids);
    return ids;
  }
  // All changes of documents, as a build reads them.
  std::vector<SourceDocument> documents() {
    return store->run([&](kv::Transaction& tx) {
      std::vector<SourceDocument> found;
      docs::visit_changes(tx, catalog.open(tx, "db"), {}, [&](const docs::Change& change) {
        SourceDocument document{.change = change};
        docs::append_open_document(document.json, change.id, change.winner, false, "{}");
        document.json += '}';
        found.push_back(std::move(document));
        return true;
      });
      return found;
    });
  }
  std::vector<std::string> findings() {
    kv::testing::MapRows rows(*store);
    kv::Findings found;
    Check triggers(found);
    views::Check others(store->begin()->read_version(), found,
                        [](std::int64_t) { return std::optional<std::string>("db"); });
    kv::testing::run_checks(rows, {&triggers, &others});
    return found.kept();
  }
};

TEST_F(TriggersTest, ABatchOfAnOlderDefinitionIsNotWritten) {
  define_with("old-");
  put(R"({"_id":"a"})");
  const auto index = first_index();
  const auto source = documents();
  const auto batch = index->map(source);
  EXPECT_EQ(batch->rows(), 1u);
  define_with("new-");
  EXPECT_EQ(batch->prepare(*store, keys(), 0, {}), batch->documents());
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { batch->write(tx, keys()); }), IndexChanged);
  build();
  EXPECT_THAT(ids(), ElementsAre("new-a"));
}

TEST_F(TriggersTest, ABatchOfARemovedTriggerIsNotWritten) {
  define_with("old-");
  put(R"({"_id":"a"})");
  const auto source = documents();
  const auto batch = first_index()->map(source);
  define("{}");
  batch->prepare(*store, keys(), 0, {});
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { batch->write(tx, keys()); }), IndexChanged);
  EXPECT_THAT(ids(), IsEmpty());
  EXPECT_TRUE(store->run([&](kv::Transaction& tx) { return tx.get_range(keys().all(), {}).rows.empty(); }));
}

TEST_F(TriggersTest, JobsAreAcceptedForAWaitingWorkerInTheTransactionThatAddsThem) {
  define_with("a-");
  const auto waiter = acceptor.join({"mail"}, {}, [] {});
  ASSERT_FALSE(acceptor.step(waiter).done);
  put(R"({"_id":"x"})");
  put(R"({"_id":"y"})");
  build();
  const auto before = store->begin()->read_version();
  const auto step = acceptor.step(waiter);
  EXPECT_EQ(store->begin()->read_version(), before) << "the worker needs no transaction of its own";
  ASSERT_EQ(step.jobs.size(), 1u);
  EXPECT_EQ(step.jobs[0].job.id, "a-x");
  EXPECT_EQ(all_jobs()[0].state, jobs::State::running);
  EXPECT_EQ(all_jobs()[1].state, jobs::State::pending);
}

TEST_F(TriggersTest, AFailedBatchLeavesTheWaitingWorkerAsItWas) {
  define_with("a-");
  const auto waiter = acceptor.join({"mail"}, {}, [] {});
  ASSERT_FALSE(acceptor.step(waiter).done);
  put(R"({"_id":"x"})");
  const auto source = documents();
  const auto batch = first_index()->map(source);
  batch->prepare(*store, keys(), 0, {});
  int tries = 0;
  const auto fail = [&] {
    store->run([&](kv::Transaction& tx) {
      batch->write(tx, keys());
      ++tries;
      throw IndexChanged();
    });
  };
  EXPECT_THROW(batch->commit(fail), IndexChanged);
  EXPECT_EQ(tries, 2) << "the poll may have been why, so it is tried without";
  EXPECT_FALSE(acceptor.step(waiter).done);
  build();
  EXPECT_EQ(acceptor.step(waiter).jobs.size(), 1u);
}

TEST_F(TriggersTest, AMalformedOneFromAnotherServerKeepsItsState) {
  define_with("a-");
  put(R"({"_id":"x"})");
  const auto replicate = [&](std::string_view triggers, int generation) {
    std::vector documents{docs::parse_document(json::compact(
        fmt::format(R"({{"_id":"_design/t","_rev":"{}-f","triggers":{}}})", generation, triggers)))};
    docs::bulk_replicate(*store, catalog, "db", documents);
  };
  replicate(R"({"t":5})", 8);
  EXPECT_EQ(first_index(), nullptr);
  put(R"({"_id":"y"})");
  replicate(R"({"t":{"job":{"type":"mail","id":"b-{_id}"}}})", 9);
  build();
  EXPECT_THAT(ids(), ElementsAre("b-x", "b-y"));
}

TEST_F(TriggersTest, ACleanUpKeepsTheStateOfAMalformedOne) {
  define_with("a-");
  std::vector documents{docs::parse_document(R"({"_id":"_design/t","_rev":"8-f","triggers":{"t":5}})")};
  docs::bulk_replicate(*store, catalog, "db", documents);
  const auto unused = [&] {
    return store->run([&](kv::Transaction& tx) { return remove_unused(tx, catalog.open(tx, "db"), kinds); });
  };
  EXPECT_EQ(unused(), 0u);
  documents = {docs::parse_document(R"({"_id":"_design/t","_rev":"9-f"})")};
  docs::bulk_replicate(*store, catalog, "db", documents);
  EXPECT_EQ(unused(), 0u) << "the state was removed with the trigger";
}

// The longest ids, whose control characters have six bytes in JSON.
TEST_F(TriggersTest, JobsOfLongIdsFitTheirTransactions) {
  const std::string id_end(3000, '\1');
  define(R"({"t":{"job":{"type":"mail"}}})");
  std::vector<docs::IncomingDocument> documents(600);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    documents[i].id = fmt::format("{:04}", i) + id_end;
    documents[i].body = "{}";
  }
  docs::bulk_edit(*store, catalog, "db", documents, rng);
  builder = std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, clock, BuilderOptions());
  build();
  EXPECT_EQ(all_jobs().size(), 600u);
}

TEST_F(TriggersTest, ADocumentWithTooManyBytesOfJobsIsLeftOut) {
  define(R"({"t":{"map":"doc => { for (let i = 0; i < 1000; ++i) job('mail', i + doc.pad) }"}})");
  put(R"({"_id":"a","pad":")" + std::string(990, 'x') + "\"}");
  put(R"({"_id":"b","pad":"x"})");
  build();
  EXPECT_EQ(all_jobs().size(), 1000u);
  EXPECT_EQ(store->run([&](kv::Transaction& tx) { return read_left_out(tx, keys()); }).examples.at(0).id,
            "a");
}

TEST_F(TriggersTest, DocumentsThatTakeTooLongAreLeftOut) {
  kinds.assign({std::make_shared<TriggerKind>(
      Jobs{queue}, pool, js::Limits{.invocation = std::chrono::milliseconds(50), .urgent = true})});
  define(R"({"t":{"map":"doc => { if (doc.loop) for (;;); job('mail', doc._id) }"}})");
  std::vector<std::string> texts;
  for (int i = 0; i < 14; ++i)
    texts.push_back(fmt::format(R"({{"_id":"{:02}"{}}})", i, i % 3 == 1 ? R"(,"loop":1)" : ""));
  put_all(texts);
  build();
  EXPECT_THAT(ids(), ElementsAre("00", "02", "03", "05", "06", "08", "09", "11", "12"));
  EXPECT_EQ(store->run([&](kv::Transaction& tx) { return read_left_out(tx, keys()); }).documents, 5);
}

TEST_F(TriggersTest, OneWhoseFunctionDoesNotCompileWaits) {
  const auto replicate = [&](std::string_view map, int generation) {
    std::vector documents{docs::parse_document(json::compact(fmt::format(
        R"({{"_id":"_design/t","_rev":"{}-f","triggers":{{"t":{{"map":"{}"}}}}}})", generation, map)))};
    docs::bulk_replicate(*store, catalog, "db", documents);
  };
  replicate("function (", 1);
  put(R"({"_id":"a"})");
  build();
  EXPECT_EQ(store->run([&](kv::Transaction& tx) { return read_left_out(tx, keys()); }).documents, 0);
  replicate("doc => job('mail', doc._id)", 2);
  build();
  EXPECT_THAT(ids(), ElementsAre("a"));
}

TEST_F(TriggersTest, ADocumentThatWasDeletedBeforeItIsNotDeletedAgain) {
  const auto a = put(R"({"_id":"a"})"), b = put(R"({"_id":"b"})");
  put(fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true}})", a));
  put(fmt::format(R"({{"_id":"b","_rev":"{}","_deleted":true}})", b));
  std::vector losing{docs::parse_document(R"({"_id":"b","_rev":"1-0","_deleted":true})")};
  docs::bulk_replicate(*store, catalog, "db", losing);
  define(R"({"t":{"on":["deleted"],"job":{"type":"mail","id":"{_id}"}}})");
  losing = {docs::parse_document(R"({"_id":"a","_rev":"1-0","_deleted":true})")};
  docs::bulk_replicate(*store, catalog, "db", losing);
  store->run([&](kv::Transaction& tx) {
    docs::Writer writer(tx, catalog.open(tx, "db"));
    writer.purge("b", {docs::parse_revision("1-0")});
    writer.finish();
  });
  build();
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_F(TriggersTest, AJobThatIsPendingKeepsItsPlaceInALimitedRate) {
  ManualClock manual;
  jobs::Queue with{registry, manual, rng};
  kinds.assign({std::make_shared<TriggerKind>(Jobs{with}, pool)});
  define_with("", R"(,"max_per_second":1)");
  std::string rev;
  for (int n = 0; n < 10; ++n) {
    rev = put(
        fmt::format(R"({{"_id":"a"{}}})", rev.empty() ? "" : fmt::format(R"(,"_rev":"{}","n":{})", rev, n)));
    build();
  }
  put(R"({"_id":"b"})");
  build();
  for (const auto& job : all_jobs()) EXPECT_LE(job.scheduled_at, manual.wall_ms() + 1000) << job.id;
}

TEST_F(TriggersTest, OneThatWasStoredByAnOlderVersionBeginsWithItsFirstBuild) {
  define_with("a-");
  // What such a version has not written.
  store->run([&](kv::Transaction& tx) { tx.clear_range(keys().all()); });
  put(R"({"_id":"before"})");
  build();
  put(R"({"_id":"after"})");
  build();
  EXPECT_THAT(ids(), ElementsAre("a-after"));
}

TEST_F(TriggersTest, TheRemovalOfUnusedIndexesKeepsIt) {
  define_with("a-");
  put(R"({"_id":"x"})");
  EXPECT_EQ(store->run([&](kv::Transaction& tx) { return remove_unused(tx, catalog.open(tx, "db"), kinds); }),
            0u);
  build();
  EXPECT_THAT(ids(), ElementsAre("a-x"));
}

TEST_F(TriggersTest, TimesOfALimitedRateFollowAClockThatIsSetBack) {
  constexpr std::int64_t kDay = 24 * 3'600'000;
  ManualClock ahead(1'700'000'000'000), back(1'700'000'000'000 - kDay);
  jobs::Queue first{registry, ahead, rng}, second{registry, back, rng};
  const auto put_five = [&](const std::string& prefix) {
    std::vector<std::string> texts;
    for (int i = 0; i < 5; ++i) texts.push_back(fmt::format(R"({{"_id":"{}{}"}})", prefix, i));
    put_all(texts);
  };
  const auto build_with = [&](jobs::Queue& with) {
    kinds.assign({std::make_shared<TriggerKind>(Jobs{with}, pool)});
    build();
  };
  define_with("", R"(,"max_per_second":1)");
  put_five("a");
  build_with(first);
  put_five("b");
  build_with(second);
  std::int64_t last = 0;
  for (const auto& job : all_jobs()) {
    if (job.id.starts_with('b')) last = std::max(last, job.scheduled_at);
  }
  EXPECT_EQ(last, back.wall_ms() + 9'000);
}

TEST_F(TriggersTest, ItsRowsAreVerified) {
  define(R"({"t":{"on":["deleted"],"max_per_second":5,"job":{"type":"mail","data":{"x":"{x}"}}}})");
  const auto a = put(R"({"_id":"a"})"), b = put(R"({"_id":"b","x":1})");
  build();
  put(fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true}})", a));
  put(fmt::format(R"({{"_id":"b","_rev":"{}","_deleted":true}})", b));
  build();
  EXPECT_EQ(all_jobs().size(), 1u);
  EXPECT_THAT(findings(), IsEmpty());
  for (const auto& key :
       {seen_key(keys(), "a"), rate_key(keys()), jobs_key(keys()), last_error_key(keys())}) {
    const auto before = store->run([&](kv::Transaction& tx) { return *tx.get(key); });
    store->run([&](kv::Transaction& tx) { tx.set(key, "\x99"); });
    EXPECT_EQ(findings().size(), 1u);
    store->run([&](kv::Transaction& tx) { tx.set(key, before); });
  }
}

}  // namespace
}  // namespace divan::index::triggers
