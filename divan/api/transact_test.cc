// POST /_transact on a store that loses replies, and by workers that have lost their jobs.
#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/jobs/attempts.h"
#include "divan/kv/lossy_testing.h"

namespace divan::api {
namespace {

using http::testing::RawClient;
using kv::testing::LossyStore;
using testing::HasSubstr;

struct Transact : Streams {
  LossyStore lossy{*store};
  const Context on_lossy = context_on(lossy);

  Transact() {
    responder = [this](const CallPtr& call) -> Async<RouteResult> {
      try {
        co_return co_await transact(on_lossy, call);
      } catch (const Error& error) {
        co_return json_response(error.status(), error.name() + ": " + error.reason());
      }
    };
    store->run([&](kv::Transaction& tx) {
      catalog.create(tx, "db");
      queue.set_type(tx, "t", {});
      queue.add(tx, "t", "work", "{}");
    });
  }

  std::string post(const std::string& body) {
    RawClient client(test.server);
    client.send(
        fmt::format("POST /_transact HTTP/1.1\r\nHost: h\r\nContent-Type: "
                    "application/json\r\nContent-Length: {}\r\n\r\n{}",
                    body.size(), body));
    const auto response = client.response();
    return fmt::format("{} {}", response.status, response.body);
  }
  jobs::AcceptedJob accept() {
    const std::vector<std::string> types{"t"};
    return store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.at(0); });
  }
  std::int64_t count(jobs::State state) {
    return store->run([&](kv::Transaction& tx) { return queue.counts(tx, "t")[state]; });
  }
  // The generation of a document's revision; 0 if it does not exist.
  std::size_t generation(std::string_view id) {
    return store->run([&](kv::Transaction& tx) -> std::size_t {
      const auto tree = docs::read_tree(tx, catalog.open(tx, "db"), id);
      return tree.empty() ? 0 : tree.front().path.generation;
    });
  }
  std::string finish_and_write(const std::string& lock) {
    return post(fmt::format(R"({{"docs":{{"db":[{{"_id":"effect"}}]}},"jobs":{{"finish":[)"
                            R"({{"type":"t","id":"work","lock":"{}"}}],"add":[{{"type":"t"}}]}}}})",
                            lock));
  }
};

TEST_F(Transact, ALostReplyAppliesNothingTwice) {
  const auto job = accept();
  lossy.fates = {LossyStore::Fate::lost_after_commit};
  EXPECT_THAT(finish_and_write(job.job.lock), HasSubstr("200 {\"ok\":true"));
  EXPECT_EQ(lossy.commits, 1);
  EXPECT_EQ(generation("effect"), 1u);
  EXPECT_EQ(count(jobs::State::finished), 1);
  EXPECT_EQ(count(jobs::State::pending), 1);
}

TEST_F(Transact, AFailedCommitWithALostReplyIsRetried) {
  const auto job = accept();
  lossy.fates = {LossyStore::Fate::late, LossyStore::Fate::answered, LossyStore::Fate::lost_before_commit};
  EXPECT_THAT(finish_and_write(job.job.lock), HasSubstr("200 {\"ok\":true"));
  EXPECT_EQ(lossy.commits, 5) << "two attempts with their settling commits, and the last attempt";
  EXPECT_EQ(lossy.deliver(), 0);
  EXPECT_EQ(generation("effect"), 1u);
  EXPECT_EQ(count(jobs::State::finished), 1);
  EXPECT_EQ(count(jobs::State::pending), 1);
}

// The worker had the job when it sent the request, and lost it before the commit.
TEST_F(Transact, AJobLostMeanwhileHalts) {
  const auto job = accept();
  lossy.before_commit = [&] {
    store->run([&](kv::Transaction& tx) { jobs::release(queue, tx, job.attempt()); });
  };
  EXPECT_THAT(finish_and_write(job.job.lock), HasSubstr("409 halt: Job `work` of type `t`: "));
  EXPECT_EQ(generation("effect"), 0u);
  EXPECT_EQ(count(jobs::State::pending), 1);
}

TEST_F(Transact, ADocumentChangedMeanwhileConflicts) {
  const auto job = accept();
  lossy.before_commit = [&] {
    store->run([&](kv::Transaction& tx) {
      docs::Writer writer(tx, catalog.open(tx, "db"));
      writer.edit({.id = "effect", .body = "{}"});
      writer.finish();
    });
  };
  EXPECT_THAT(finish_and_write(job.job.lock),
              HasSubstr("409 conflict: Document `effect` of database `db`: "));
  EXPECT_EQ(count(jobs::State::running), 1);
}

TEST_F(Transact, ADatabaseRemovedMeanwhileIsMissing) {
  const auto job = accept();
  lossy.before_commit = [&] { store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); }); };
  EXPECT_THAT(finish_and_write(job.job.lock), HasSubstr("404 not_found: Database `db`: "));
  EXPECT_EQ(count(jobs::State::running), 1);
}

}  // namespace
}  // namespace divan::api
