// Reports on several jobs in one request, on a store that fails in between.
#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/jobs/attempts.h"
#include "divan/kv/tiring_testing.h"

namespace divan::api {
namespace {

using testing::HasSubstr;

struct BulkReports : Streams {
  kv::testing::TiringStore tiring{*store};
  const Context on_tiring = context_on(tiring);

  BulkReports() {
    responder = [this](const CallPtr& call) { return route(on_tiring, call); };
    store->run([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
  }

  std::vector<jobs::AcceptedJob> accept(const std::vector<std::string>& ids) {
    store->run([&](kv::Transaction& tx) {
      for (const auto& id : ids) queue.add(tx, "t", id, "{}");
    });
    const std::vector<std::string> types{"t"};
    return store->run(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = ids.size()}).jobs; });
  }
  std::string finish(const std::vector<jobs::AcceptedJob>& jobs, std::size_t data_bytes) {
    std::string body;
    for (const auto& [job, data] : jobs) {
      body += fmt::format(R"({}{{"id":"{}","lock":"{}","data":"{}"}})", body.empty() ? "" : ",", job.id,
                          job.lock, std::string(data_bytes, 'x'));
    }
    body = "{\"jobs\":[" + body + "]}";
    http::testing::RawClient client(test.server);
    client.send(
        fmt::format("POST /_jobs/t/_finish HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    body.size(), body));
    const auto response = client.response();
    return fmt::format("{} {}", response.status, response.body);
  }
  std::int64_t count(jobs::State state) {
    return store->run([&](kv::Transaction& tx) { return queue.counts(tx, "t")[state]; });
  }
};

TEST_F(BulkReports, ReportsTooLargeForATransactionTakeSeveral) {
  const auto jobs = accept({"a", "b", "c", "d", "e"});
  // Each was added again meanwhile, so its new data are moved when it ends: few of them fit in a transaction.
  const std::string data = "\"" + std::string(4'000'000, 'x') + "\"";
  for (const char* id : {"a", "b", "d", "e"})
    store->run([&](kv::Transaction& tx) { queue.add(tx, "t", id, data); });
  EXPECT_THAT(finish(jobs, 1),
              testing::StrEq("200 [{\"ok\":true},\n{\"ok\":true},\n{\"ok\":true},\n{\"ok\":true},\n"
                             "{\"ok\":true}]\n"));
  EXPECT_EQ(count(jobs::State::pending), 4);
  EXPECT_EQ(count(jobs::State::finished), 1);
}

TEST_F(BulkReports, ResultsBeforeAFailureOfTheStoreAreReturned) {
  const auto jobs = accept({"a", "b", "c", "d"});
  tiring.commits_left = 1;
  // Two of them fill a transaction.
  const std::string answer = finish(jobs, 600'000);
  EXPECT_THAT(answer, testing::StartsWith("200 [{\"ok\":true},\n{\"ok\":true},\n"
                                          "{\"id\":\"c\",\"error\":\"transaction_timed_out\","));
  EXPECT_THAT(answer, HasSubstr(R"({"id":"d","error":"transaction_timed_out")"));
  EXPECT_THAT(answer, HasSubstr(R"("status":503})"));
  EXPECT_EQ(count(jobs::State::finished), 2);
  EXPECT_EQ(count(jobs::State::running), 2);
}

TEST_F(BulkReports, IfNoReportWasExecutedTheRequestFails) {
  const auto jobs = accept({"a", "b"});
  tiring.commits_left = 0;
  EXPECT_THAT(finish(jobs, 1), testing::StartsWith("503 "));
  EXPECT_EQ(count(jobs::State::running), 2);
}

}  // namespace
}  // namespace divan::api
