// Feeds of a job and of workers, on a store that changes between two of their transactions, and on one
// without watches.
#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/base/json.h"
#include "divan/jobs/attempts.h"
#include "divan/kv/forwarding.h"

namespace divan::api {
namespace {

// Calls a function after one of the committed transactions.
class HookedStore final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override {
    return std::make_unique<HookedTransaction>(*this, inner().begin());
  }
  /// Sets the function to be called after the transaction of this number, counted from now.
  void call_after(int number, std::function<void()> callback) {
    callback_ = std::move(callback);
    left_ = number;
  }
  std::atomic<bool> no_watches = false;

 private:
  class HookedTransaction final : public kv::ForwardingTransaction {
   public:
    HookedTransaction(HookedStore& store, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}
    std::shared_ptr<kv::Watch> watch(std::string_view key) override {
      if (store_.no_watches) throw kv::Error(kv::ErrorCode::too_many_watches);
      return ForwardingTransaction::watch(key);
    }

   protected:
    std::string do_commit() override {
      auto stamp = ForwardingTransaction::do_commit();
      if (--store_.left_ == 0) store_.callback_();
      return stamp;
    }

   private:
    HookedStore& store_;
  };
  std::function<void()> callback_;
  std::atomic<int> left_ = 0;
};

struct JobFeed : Streams {
  HookedStore hooked{*store};
  const Context on_hooked = context_on(hooked);
  jobs::AcceptedJob job;

  JobFeed() {
    responder = [this](const CallPtr& call) { return route(on_hooked, call); };
    store->run([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {});
      queue.add(tx, "t", "j", "{}");
    });
    const std::vector<std::string> types{"t"};
    job = store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.at(0); });
  }
  std::string get(const std::string& query) {
    return http::Client("127.0.0.1", test.server.port()).request("GET", "/_jobs/t/j" + query).body;
  }
  // What a client that knows that the job is running receives if the job is finished after the transaction of
  // this number.
  std::string received_if_finished_after(int transaction) {
    const std::string before = json::compact(get("?feed=longpoll"));
    const auto seq = json::string_value(json::member(before, "last_seq").value_or(""));
    hooked.call_after(transaction, [this] {
      store->run([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt(), std::nullopt); });
    });
    // Without heartbeats it would end after its timeout, with a last read.
    http::testing::RawClient client(test.server);
    client.send("GET /_jobs/t/j?feed=longpoll&heartbeat=3600000&since=" + seq.value_or("none") +
                " HTTP/1.1\r\nHost: h\r\n\r\n");
    return client.until("last_seq");
  }
};

// The first transaction checks that the job exists, the second one reads it.
TEST_F(JobFeed, AJobFinishedBeforeTheReadIsReported) {
  EXPECT_THAT(received_if_finished_after(1), testing::HasSubstr(R"("state":"finished")"));
}

TEST_F(JobFeed, AJobFinishedRightAfterTheReadIsReported) {
  EXPECT_THAT(received_if_finished_after(2), testing::HasSubstr(R"("state":"finished")"));
}

TEST_F(JobFeed, WithoutWatchesAJobIsPolled) {
  hooked.no_watches = true;
  for (const char* heartbeat : {"", "&heartbeat=3600000"}) {
    http::testing::RawClient client(test.server);
    client.send(
        fmt::format("GET /_jobs/t/j?feed=continuous&timeout=60000{} HTTP/1.1\r\nHost: h\r\n\r\n", heartbeat));
    client.until(R"("state":"running")");
    const auto progress = fmt::format("\"seen{}\"", heartbeat);
    store->run([&](kv::Transaction& tx) { jobs::update(queue, tx, job.attempt(), std::nullopt, progress); });
    EXPECT_THAT(client.until(progress), testing::HasSubstr(R"("progress":)"));
  }
}

TEST_F(JobFeed, WithoutWatchesMembersArePolled) {
  hooked.no_watches = true;
  http::testing::RawClient client(test.server);
  client.send("GET /_workers/role?feed=continuous&heartbeat=3600000 HTTP/1.1\r\nHost: h\r\n\r\n");
  client.until(R"("workers":[]})");
  store->run([&](kv::Transaction& tx) { registry.add(tx, "role", "w1", "{}"); });
  EXPECT_THAT(client.until(R"("id":"w1")"), testing::HasSubstr(R"("role":"role")"));
}

}  // namespace
}  // namespace divan::api
