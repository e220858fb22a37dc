// Stopping a server.
#include <gtest/gtest.h>

#include "divan/base/thread_pool.h"
#include "divan/http/server.h"
#include "divan/http/testing.h"

namespace divan::http {
namespace {

using std::chrono::milliseconds;
using testing::Flag;
using testing::kGet;
using testing::RawClient;
using testing::TestServer;

TEST(HttpServerStop, IdleConnectionsAreClosedAndNoNewOnesAccepted) {
  auto options = testing::options();
  options.stop_timeout = testing::kPatience * 10;
  TestServer test([](const std::shared_ptr<Exchange>& exchange) { exchange->respond({}); }, options);
  RawClient used(test.server), fresh(test.server);
  used.send(kGet);
  EXPECT_EQ(used.response().status, 200);
  test.server.stop();
  EXPECT_EQ(used.until_end(), "");
  EXPECT_EQ(fresh.until_end(), "");
  EXPECT_EQ(test.server.connections(), 0u);
  EXPECT_THROW(RawClient(test.server), Error);
  test.server.stop();
}

// A callback, or false: also if both come at the same time.
TEST(HttpServerStop, CallsBackOrSaysThatItIsTooLate) {
  for (int i = 0; i < 100; ++i) {
    std::shared_ptr<Exchange> kept;
    Flag asked;
    TestServer test([&](const std::shared_ptr<Exchange>& exchange) {
      kept = exchange;
      exchange->respond({});
      asked.raise();
    });
    RawClient client(test.server);
    client.send(kGet);
    ASSERT_TRUE(asked.wait());
    std::atomic<int> accepted = 0, called = 0;
    std::atomic<bool> stopped = false;
    std::jthread caller([&] {
      while (kept->call_after(milliseconds(0), [&] { ++called; })) {
        ++accepted;
        while (called < accepted && !stopped) std::this_thread::yield();
      }
    });
    test.server.stop();
    stopped = true;
    caller.join();
    EXPECT_EQ(called, accepted);
  }
}

TEST(HttpServerStop, RequestsInProgressAreCompleted) {
  auto options = testing::options();
  options.stop_timeout = testing::kPatience * 10;
  options.linger_timeout = milliseconds(40);
  Flag asked, release;
  ThreadPool pool("test", 4, 10);
  TestServer test(
      [&](std::shared_ptr<Exchange> exchange) {
        pool.submit([&, exchange = std::move(exchange)] {
          asked.raise();
          release.wait();
          exchange->respond({200, {}, "late"});
        });
      },
      options);
  RawClient client(test.server), ahead(test.server);
  client.send(kGet);
  ahead.send(std::string(kGet) + std::string(kGet));
  ASSERT_TRUE(asked.wait(2));
  std::thread stopper([&] { test.server.stop(); });
  // The server is stopping once it does not listen any more.
  EXPECT_TRUE(testing::eventually([&] {
    try {
      RawClient another(test.server);
      return false;
    } catch (const Error&) { return true; }
  }));
  release.raise();
  for (auto* waiting : {&client, &ahead}) {
    const auto response = waiting->response();
    EXPECT_EQ(response.body, "late");
    EXPECT_EQ(response.header("Connection"), "close");
    EXPECT_EQ(waiting->until_end(), "");
  }
  stopper.join();
}

TEST(HttpServerStop, OpenStreamsAreCutAtTheDeadline) {
  auto options = testing::options();
  options.stop_timeout = milliseconds(50);
  Flag opened, closed;
  std::vector<std::shared_ptr<Exchange>> streams;
  std::mutex mutex;
  TestServer test(
      [&](const std::shared_ptr<Exchange>& exchange) {
        exchange->start({200, {}, "open\n"});
        exchange->on_close([&] { closed.raise(); });
        exchange->after(std::chrono::hours(1), [exchange] { exchange->end(); });
        std::lock_guard lock(mutex);
        streams.push_back(exchange);
        opened.raise();
      },
      options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(test.server));
    clients.back()->send(kGet);
    clients.back()->until("open\n");
  }
  ASSERT_TRUE(opened.wait(10));
  test.server.stop();
  EXPECT_EQ(closed.times(), 10);
  for (auto& client : clients) EXPECT_EQ(client->until("0\r\n\r\n").find("0\r\n"), std::string::npos);
  for (const auto& stream : streams) EXPECT_TRUE(stream->closed());
}

TEST(HttpServerStop, AnExchangeMayOutliveTheServer) {
  auto options = testing::options();
  options.stop_timeout = milliseconds(0);
  std::shared_ptr<Exchange> answered, streamed;
  Flag asked;
  std::optional<TestServer> test;
  test.emplace(
      [&](std::shared_ptr<Exchange> exchange) {
        (exchange->request().path() == "/a" ? answered : streamed) = std::move(exchange);
        asked.raise();
      },
      options);
  RawClient first(test->server), second(test->server);
  first.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  second.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(asked.wait(2));
  streamed->start({});
  test.reset();
  answered->respond({200, {}, "too late"});
  streamed->write("too late");
  streamed->after(milliseconds(1), [] { ADD_FAILURE(); });
  const auto token = std::make_shared<int>(0);
  streamed->on_close([streamed, token] { ADD_FAILURE() << "there is no thread to call it"; });
  EXPECT_EQ(token.use_count(), 1);
  streamed->end();
  EXPECT_TRUE(answered->closed());
}

TEST(HttpServerStop, StoppingUnderLoad) {
  for (int round = 0; round < 5; ++round) {
    auto options = testing::options();
    options.stop_timeout = milliseconds(20);
    ThreadPool pool("test", 3, 10'000);
    TestServer test(
        [&](const std::shared_ptr<Exchange>& exchange) {
          pool.submit([exchange] {
            exchange->start({});
            exchange->on_close([exchange] { exchange->end(); });
            for (int i = 0; i < 10; ++i) exchange->write("x");
            exchange->after(milliseconds(1), [exchange] { exchange->end(); });
          });
        },
        options);
    std::vector<std::thread> clients;
    Flag served;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&] {
        try {
          RawClient client(test.server);
          for (;;) {
            client.send(std::string(kGet) + std::string(kGet));
            EXPECT_EQ(client.response().body.size(), 10u);
            EXPECT_EQ(client.response().body.size(), 10u);
            served.raise();
          }
        } catch (const Error&) {}
      });
    }
    EXPECT_TRUE(served.wait(20));
    test.server.stop();
    for (auto& client : clients) client.join();
  }
}

}  // namespace
}  // namespace divan::http
