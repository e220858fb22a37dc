#include "divan/api/request_executor.h"

#include <gtest/gtest.h>

#include <set>

#include "divan/api/errors.h"
#include "divan/api/testing.h"
#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"

namespace divan::api {
namespace {

using http::testing::Flag;
using http::testing::RawClient;

// Requests begin on their io thread, as in the real server.
struct Executors : ::testing::Test {
  Flag ended, release, began, syncing, go_on;  // before the threads that raise them
  SystemClock clock;
  SystemRng rng;
  std::shared_ptr<kv::embedded::SimulatedDisk> disk = std::make_shared<kv::embedded::SimulatedDisk>();
  kv::embedded::SimulatedMachine machine{disk};
  kv::embedded::EmbeddedDatabase store{{.directory = "/store", .env = &machine}, clock, rng};
  ThreadPool pool{"worker", 1, 2};

  // Runs `fn` as a transaction of a request; `ended` is raised when its coroutine has ended.
  template <class Fn>
  Detached respond(std::shared_ptr<http::Exchange> exchange, Fn fn) {
    {
      RequestExecutor executor(*exchange, pool);
      try {
        const auto* ran = &fn;
        co_await executor.run(store, [&executor, ran](kv::Transaction& tx) { (*ran)(executor, tx); });
        exchange->respond(json_response(200, executor.may_block() ? "\"worker\"" : "\"io\""));
      } catch (const Error& error) {
        exchange->respond(http::error_response(error));
      } catch (const kv::Error& error) { exchange->respond(http::error_response(http_error(error))); }
    }
    exchange.reset();
    ended.raise();
  }

  template <class Fn>
  http::Handler handler(Fn fn) {
    return [this, fn](const std::shared_ptr<http::Exchange>& exchange) { respond(exchange, fn); };
  }

  // The last commit was slow, so io threads do not wait for the next one.
  void make_disk_slow() {
    disk->set_fault([](kv::embedded::SimulatedDisk::Operation operation, const std::string& file) {
      if (operation == kv::embedded::SimulatedDisk::Operation::sync && file.ends_with(".log"))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return rocksdb::IOStatus::OK();
    });
    store.run([](kv::Transaction& tx) { tx.set("slow", "1"); });
  }

  static std::string get(RawClient& client) {
    client.send(kGet);
    return client.response().body;
  }
};

TEST_F(Executors, AShortTransactionStaysOnItsIoThread) {
  std::set<std::thread::id> threads;
  http::testing::TestServer test(handler([&](RequestExecutor&, kv::Transaction& tx) {
    threads.insert(std::this_thread::get_id());
    tx.add("n", 1);
  }));
  RawClient client(test.server);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(get(client), "\"io\"\n");
  test.server.stop();
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_EQ(kv::decode_counter(store.begin()->get("n")), 10);
}

TEST_F(Executors, AReadThatWouldBlockRunsAgainOnAWorker) {
  store.run([](kv::Transaction& tx) {
    for (int i = 0; i < 4; ++i) tx.set("large" + std::to_string(i), std::string(kv::kMaxValueBytes, 'x'));
  });
  std::vector<std::thread::id> threads;
  http::testing::TestServer test(handler([&](RequestExecutor&, kv::Transaction& tx) {
    threads.push_back(std::this_thread::get_id());
    EXPECT_EQ(tx.get_range({"l", "m"}).rows.size(), 4u);
    tx.add("n", 1);
  }));
  RawClient client(test.server);
  EXPECT_EQ(get(client), "\"worker\"\n");
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_EQ(kv::decode_counter(store.begin()->get("n")), 1);
}

TEST_F(Executors, ABusyServerRefusesWhatNeedsAWorker) {
  pool.submit([&] {
    began.raise();
    release.wait();
  });
  ASSERT_TRUE(began.wait());
  while (pool.submit([] {})) continue;
  http::testing::TestServer test(handler([&](RequestExecutor& executor, kv::Transaction&) {
    if (!executor.may_block()) throw kv::Error(kv::ErrorCode::would_block);
  }));
  RawClient client(test.server);
  client.send(kGet);
  EXPECT_EQ(client.response().status, 503);
  release.raise();
}

TEST_F(Executors, TriesAgainAfterConflictsWithoutBlocking) {
  int tries = 0;
  http::testing::TestServer test(handler([&](RequestExecutor&, kv::Transaction& tx) {
    tx.get("a");
    tx.set("b", "1");
    if (++tries < 4) store.run([](kv::Transaction& other) { other.set("a", "1"); });
  }));
  RawClient client(test.server);
  EXPECT_EQ(get(client), "\"io\"\n");
  EXPECT_EQ(tries, 4);
}

TEST_F(Executors, AnIdleIoThreadCommitsItself) {
  std::atomic<std::thread::id> synced_by;
  disk->set_fault([&](kv::embedded::SimulatedDisk::Operation operation, const std::string& file) {
    if (operation == kv::embedded::SimulatedDisk::Operation::sync && file.ends_with(".log"))
      synced_by = std::this_thread::get_id();
    return rocksdb::IOStatus::OK();
  });
  std::atomic<std::thread::id> io_thread;
  http::testing::TestServer test(handler([&](RequestExecutor&, kv::Transaction& tx) {
    io_thread = std::this_thread::get_id();
    tx.set("a", "1");
  }));
  RawClient client(test.server);
  // Unless it is busy with the previous response, or the machine is so busy that the last commit was slow.
  EXPECT_TRUE(http::testing::eventually([&] {
    EXPECT_EQ(get(client), "\"io\"\n");
    return synced_by.load() == io_thread.load();
  }));
}

// The client leaves and the server stops while the disk does not respond: the commit ends all the same, and
// then the coroutine.
TEST_F(Executors, ACommitOutlivesItsClientAndItsIoThread) {
  make_disk_slow();
  disk->set_fault([&](kv::embedded::SimulatedDisk::Operation operation, const std::string& file) {
    if (operation == kv::embedded::SimulatedDisk::Operation::sync && file.ends_with(".log")) {
      syncing.raise();
      go_on.wait();
    }
    return rocksdb::IOStatus::OK();
  });
  http::testing::TestServer test(handler([&](RequestExecutor&, kv::Transaction& tx) { tx.set("a", "1"); }));
  {
    RawClient client(test.server);
    client.send(kGet);
    ASSERT_TRUE(syncing.wait());
    client.reset_at_close();
  }
  test.server.stop();
  EXPECT_EQ(ended.times(), 0);
  go_on.raise();
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(store.begin()->get("a"), "1");
}

// Meanwhile the io thread serves others.
TEST_F(Executors, ACommitOnASlowDiskHoldsNoThread) {
  make_disk_slow();
  disk->set_fault([&](kv::embedded::SimulatedDisk::Operation operation, const std::string& file) {
    if (operation == kv::embedded::SimulatedDisk::Operation::sync && file.ends_with(".log")) {
      syncing.raise();
      go_on.wait();
    }
    return rocksdb::IOStatus::OK();
  });
  std::atomic<int> requests = 0;
  auto options = http::testing::options();
  options.threads = 1;
  http::testing::TestServer test(handler([&](RequestExecutor&, kv::Transaction& tx) {
                                   if (requests++ < 100) tx.add("n", 1);
                                 }),
                                 options);
  std::vector<std::unique_ptr<RawClient>> writers;
  for (int i = 0; i < 100; ++i) {
    writers.push_back(std::make_unique<RawClient>(test.server));
    writers.back()->send(kGet);
  }
  ASSERT_TRUE(syncing.wait());
  ASSERT_TRUE(http::testing::eventually([&] { return requests == 100; }));
  RawClient reader(test.server);
  EXPECT_EQ(get(reader), "\"io\"\n");
  EXPECT_EQ(ended.times(), 1);
  go_on.raise();
  for (const auto& writer : writers) EXPECT_EQ(writer->response().status, 200);
  EXPECT_EQ(kv::decode_counter(store.begin()->get("n")), 100);
}

}  // namespace
}  // namespace divan::api
