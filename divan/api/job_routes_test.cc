// Requests about jobs that need a damaged store, or a client that closes its side of the connection.
#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/jobs/rows.h"
#include "divan/kv/forwarding.h"

namespace divan::api {
namespace {

using testing::HasSubstr;
using testing::Not;

// A store that calls a function before the first commit of a write.
class InterruptedStore final : public kv::ForwardingDatabase {
 public:
  InterruptedStore(kv::Database& inner, std::function<void()> event)
      : ForwardingDatabase(inner), event_(std::move(event)) {}
  std::unique_ptr<kv::Transaction> begin() override {
    return std::make_unique<Interrupted>(*this, inner().begin());
  }

 private:
  class Interrupted final : public kv::ForwardingTransaction {
   public:
    Interrupted(InterruptedStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

   protected:
    std::string do_commit() override {
      if (!read_only() && !store_.interrupted_.exchange(true)) store_.event_();
      return ForwardingTransaction::do_commit();
    }

   private:
    InterruptedStore& store_;
  };

  const std::function<void()> event_;
  std::atomic<bool> interrupted_ = false;
};

struct JobRoutes : Streams {
  JobRoutes() {
    responder = [this](const CallPtr& call) { return route(context, call); };
    store->run([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {});
      queue.add(tx, "t", "j", "{}");
    });
  }
  http::ClientResponse request(std::string_view method, const std::string& path) {
    return http::Client("127.0.0.1", test.server.port()).request(method, path);
  }
  http::ClientResponse add(const std::string& body) {
    return http::Client("127.0.0.1", test.server.port()).request("POST", "/_jobs/t", body);
  }
  void send_accept(http::testing::RawClient& client, std::string_view body) {
    client.send(
        fmt::format("POST /_jobs/t/_accept HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    body.size(), body));
  }
  // From now on requests use a store that calls `event` before its first commit of a write.
  void interrupt(std::function<void()> event) {
    interrupted.emplace(*store, std::move(event));
    with_event.emplace(context_on(*interrupted));
    responder = [this](const CallPtr& call) { return route(*with_event, call); };
  }
  // A request may use them until TearDown(), also when it has responded.
  std::optional<InterruptedStore> interrupted;
  std::optional<Context> with_event;

  void damage(const jobs::JobKey& key) {
    store->run([&](kv::Transaction& tx) { tx.set(key.key(), "?"); });
  }
};

TEST_F(JobRoutes, ADamagedJobCanBeRemovedById) {
  damage(jobs::JobKey("job").string("t").string("j"));
  EXPECT_EQ(request("GET", "/_jobs/t/j").status, 500);
  EXPECT_EQ(request("DELETE", "/_jobs/t/j").status, 200);
  EXPECT_EQ(request("GET", "/_jobs/t/j").status, 404);
  EXPECT_EQ(request("DELETE", "/_jobs/t/j").status, 404);
  EXPECT_THAT(request("GET", "/_jobs/t").body, HasSubstr(R"("pending":0)"));
}

TEST_F(JobRoutes, ATypeWithDamagedSettingsDoesNotHideOthers) {
  store->run([&](kv::Transaction& tx) { queue.set_type(tx, "bad", {}); });
  damage(jobs::JobKey("type").string("bad"));
  const auto types = request("GET", "/_jobs");
  EXPECT_EQ(types.status, 200);
  EXPECT_THAT(types.body, HasSubstr(R"("type":"t")"));
  EXPECT_THAT(types.body, Not(HasSubstr(R"("type":"bad")")));
  EXPECT_EQ(request("DELETE", "/_jobs/bad?force=true").status, 200);
}

// It cannot be distinguished from one that has disconnected.
TEST_F(JobRoutes, AWaitEndsWhenTheClientClosesItsSide) {
  http::testing::RawClient client(test.server);
  const std::string body = R"({"jobs":[{"type":"t","id":"j"}],"timeout":300000})";
  client.send(
      fmt::format("POST /_jobs/_wait HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  body.size(), body));
  client.end_output();
  const auto response = client.response();
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"("reached":0)"));
}

struct JobRoutesWithFinish : JobRoutes {
  std::string lock;  // of the running job "j"

  JobRoutesWithFinish() {
    const std::vector<std::string> types{"t"};
    store->run([&](kv::Transaction& tx) { lock = jobs::accept(queue, tx, types, {}).jobs.at(0).job.lock; });
    store->run([&](kv::Transaction& tx) { queue.add(tx, "t", "next", "{}"); });
  }
  void send_accept_with_finish(http::testing::RawClient& client) {
    send_accept(client, fmt::format(R"({{"finish":[{{"id":"j","lock":"{}"}}]}})", lock));
  }
  jobs::State state(std::string_view id) {
    return store->run([&](kv::Transaction& tx) { return queue.find(tx, "t", id)->state; });
  }
};

TEST_F(JobRoutesWithFinish, AnAcceptWhoseFinishConflictsIsMadeWithoutIt) {
  interrupt([&] {
    store->run([&](kv::Transaction& tx) { jobs::update(queue, tx, {"t", "j", lock}, std::nullopt, "1"); });
  });
  const auto commits = store->stats().commits;
  http::testing::RawClient client(test.server);
  send_accept_with_finish(client);
  const auto response = client.response();
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"("finished":[{"ok":true}])"));
  EXPECT_THAT(response.body, HasSubstr(R"("id":"next")"));
  EXPECT_EQ(state("j"), jobs::State::finished);
  EXPECT_EQ(store->stats().commits - commits, 3u);  // the update, the accept and the finish
}

// A client that closes its side while another request polls gets the results, and no job.
TEST_F(JobRoutesWithFinish, AFinishDoesNotWaitForThePollOfAnotherRequest) {
  http::testing::RawClient polling(test.server), client(test.server);
  interrupt([&] {
    send_accept_with_finish(client);
    client.end_output();
    EXPECT_TRUE(http::testing::eventually([&] { return state("j") == jobs::State::finished; }));
  });
  send_accept(polling, "{}");
  EXPECT_THAT(polling.response().body, HasSubstr(R"("id":"next")"));
  const auto response = client.response();
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"({"jobs":[],"finished":[{"ok":true}]})"));
}

// A request waits for a job, and others add jobs.
struct JobRoutesWithWaiter : JobRoutes {
  http::testing::RawClient worker{test.server};

  JobRoutesWithWaiter() {
    store->run([&](kv::Transaction& tx) { queue.remove(tx, "t", "j"); });
    send_accept(worker, R"({"timeout":300000})");
    EXPECT_TRUE(http::testing::eventually([this] { return is_waiting(); }));
  }
  bool is_waiting() {
    const auto poll = acceptor.poll_for_add("t");
    if (!poll) return false;
    store->run([&](kv::Transaction& tx) { acceptor.run_poll(*poll, tx); });
    acceptor.end_add_poll(*poll, nullptr);
    return true;
  }
};

TEST_F(JobRoutesWithWaiter, OneCommitAddsAndAcceptsAJob) {
  const auto commits = store->stats().commits;
  EXPECT_EQ(add(R"({"data":1})").status, 201);
  EXPECT_THAT(worker.response().body, HasSubstr(R"("attempt":1,"data":1)"));
  EXPECT_EQ(store->stats().commits - commits, 1u);
}

TEST_F(JobRoutesWithWaiter, AJobIsAddedEvenIfItCannotBeAccepted) {
  interrupt([] { throw kv::Error(kv::ErrorCode::transaction_too_large); });
  EXPECT_EQ(add(R"({"data":1})").status, 201);
  EXPECT_THAT(worker.response().body, HasSubstr(R"("attempt":1,"data":1)"));
}

TEST_F(JobRoutesWithWaiter, ARefusedAddLeavesTheWaiter) {
  EXPECT_EQ(add(R"({"scheduled_at":-1})").status, 400);
  EXPECT_TRUE(http::testing::eventually([this] { return is_waiting(); }));
  EXPECT_EQ(add(R"({"data":1})").status, 201);
  EXPECT_THAT(worker.response().body, HasSubstr(R"("attempt":1,"data":1)"));
}

}  // namespace
}  // namespace divan::api
