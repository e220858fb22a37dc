// Streamed responses: order, limits, and clients that connect and disconnect.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/base/thread_pool.h"
#include "divan/http/server.h"
#include "divan/http/testing.h"

namespace divan::http {
namespace {

using std::chrono::milliseconds;
using testing::eventually;
using testing::Flag;
using testing::kGet;
using testing::RawClient;
using testing::TestServer;

// A server whose handler passes its exchanges to the test.
class Held {
 public:
  explicit Held(ServerOptions options = testing::options())
      : test_([this](std::shared_ptr<Exchange> exchange) { put(std::move(exchange)); }, std::move(options)) {}
  ~Held() { test_.server.stop(); }

  Server& server() { return test_.server; }

  std::shared_ptr<Exchange> take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, testing::kPatience, [&] { return !exchanges_.empty(); })) return nullptr;
    auto exchange = std::move(exchanges_.front());
    exchanges_.pop_front();
    return exchange;
  }

 private:
  void put(std::shared_ptr<Exchange> exchange) {
    std::lock_guard lock(mutex_);
    exchanges_.push_back(std::move(exchange));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Exchange>> exchanges_;
  TestServer test_;
};

TEST(HttpStream, ChunksArriveAsTheyAreWritten) {
  Held held;
  RawClient client(held.server());
  client.send(kGet);
  const auto exchange = held.take();
  exchange->start({200, {{"Content-Type", "text/plain"}}, {}});
  const auto head = client.until("\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << head;
  EXPECT_EQ(head.find("Content-Length"), std::string::npos) << head;
  exchange->write("hello");
  EXPECT_EQ(client.until("hello\r\n"), "5\r\nhello\r\n");
  exchange->write("");
  exchange->write(std::string(256, 'x'));
  EXPECT_EQ(client.until("\r\n"), "100\r\n");
  EXPECT_EQ(client.until("\r\n").size(), 258u);
  exchange->end();
  EXPECT_EQ(client.until("0\r\n\r\n"), "0\r\n\r\n");
  // The connection stays open.
  client.send(kGet);
  held.take()->respond({200, {}, "next"});
  EXPECT_EQ(client.response().body, "next");
}

TEST(HttpStream, PendingWritesAreSentTogether) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    exchange->start({200, {}, "one "});
    exchange->write("two ");
    exchange->write("three");
    exchange->end();
  });
  RawClient client(test.server);
  client.send(kGet);
  client.until("\r\n\r\n");
  EXPECT_EQ(client.until("0\r\n\r\n"), "d\r\none two three\r\n0\r\n\r\n");
}

TEST(HttpStream, AStreamForHttp10EndsWithTheConnection) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    exchange->start({200, {}, "one "});
    exchange->write("two");
    exchange->end();
  });
  RawClient client(test.server);
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto answer = client.until_end();
  EXPECT_EQ(answer.find("chunked"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("Connection: close\r\n\r\none two")) << answer;
}

TEST(HttpStream, AStreamOfKnownLength) {
  Held held;
  RawClient client(held.server());
  client.send(kGet);
  auto exchange = held.take();
  exchange->start({200, {{"Content-Length", "6"}}, "abc"});
  exchange->write("def");
  exchange->end();
  auto response = client.response();
  EXPECT_EQ(response.body, "abcdef");
  EXPECT_EQ(response.header("Content-Length"), "6");
  EXPECT_EQ(response.header("Transfer-Encoding"), std::nullopt);
}

// Otherwise the next response would be read as the rest of the stream.
TEST(HttpStream, AStreamWhoseLengthDiffersFromItsContentLengthIsCut) {
  Held held;
  for (const auto* body : {"abc", "abcdefg"}) {
    RawClient client(held.server());
    client.send(kGet);
    const auto exchange = held.take();
    exchange->start({200, {{"Content-Length", "6"}}, {}});
    client.until("\r\n\r\n");
    exchange->write(body);
    exchange->end();
    EXPECT_LT(client.until_end().size(), 6u);
    EXPECT_TRUE(client.broken());
  }
}

TEST(HttpStream, AStreamThatIsDestroyedIsCut) {
  Held held;
  for (const auto* request : {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawClient client(held.server());
    client.send(request);
    auto exchange = held.take();
    exchange->start({200, {}, "part"});
    client.until("part");
    exchange.reset();
    EXPECT_EQ(client.until("0\r\n\r\n").find("0\r\n"), std::string::npos);
    EXPECT_TRUE(client.broken()) << "for HTTP/1.0, an end would mean that the stream is complete";
  }
  EXPECT_TRUE(eventually([&] { return held.server().connections() == 0; }));
}

TEST(HttpStream, WritesOfAThreadKeepTheirOrder) {
  constexpr int kThreads = 4, kWrites = 2000;
  Held held;
  RawClient client(held.server());
  client.send(kGet);
  const auto exchange = held.take();
  exchange->start({});
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&exchange, t] {
      for (int i = 0; i < kWrites; ++i) exchange->write(fmt::format("{} {}\n", t, i));
    });
  }
  for (auto& writer : writers) writer.join();
  exchange->end();
  std::istringstream lines(client.response().body);
  std::vector<int> next(kThreads, 0);
  for (int thread = 0, number = 0; lines >> thread >> number;) ASSERT_EQ(number, next[thread]++);
  EXPECT_EQ(next, std::vector<int>(kThreads, kWrites));
}

TEST(HttpStream, ADisconnectIsDetectedWhileTheStreamIsIdle) {
  auto options = testing::options();
  options.half_close_timeout = milliseconds(20);
  Held held(options);
  Flag before_start, in_stream;
  std::optional<RawClient> client(held.server());
  client->send(kGet);
  const auto waiting = held.take();
  waiting->on_half_close([&] { before_start.raise(); });
  EXPECT_FALSE(waiting->half_closed());
  client.emplace(held.server());
  EXPECT_TRUE(before_start.wait());
  EXPECT_TRUE(waiting->half_closed());
  EXPECT_TRUE(eventually([&] { return waiting->closed(); }));

  client->send(kGet);
  const auto stream = held.take();
  stream->start({});
  stream->on_close([&] { in_stream.raise(); });
  client->until("\r\n\r\n");
  EXPECT_EQ(in_stream.times(), 0);
  client->reset_at_close();
  client.reset();
  EXPECT_TRUE(in_stream.wait());
  // None of these has an effect now.
  stream->write("x");
  stream->end();
  waiting->respond({});
  EXPECT_TRUE(eventually([&] { return held.server().connections() == 0; }));
  EXPECT_EQ(before_start.times(), 1);
  EXPECT_EQ(in_stream.times(), 1);
}

TEST(HttpStream, AClientThatHalfClosesGetsTheRestOfAStream) {
  Held held;
  RawClient client(held.server());
  client.send(kGet);
  const auto exchange = held.take();
  exchange->start({});
  client.until("\r\n\r\n");
  Flag half_closed, told_late;
  exchange->on_half_close([&] { half_closed.raise(); });
  client.end_output();
  EXPECT_TRUE(half_closed.wait());
  exchange->on_half_close([&] { told_late.raise(); });
  EXPECT_TRUE(told_late.wait());
  EXPECT_FALSE(exchange->closed());
  exchange->write("abc");
  EXPECT_EQ(client.until("abc\r\n"), "3\r\nabc\r\n");
  exchange->end();
  EXPECT_EQ(client.until_end(), "0\r\n\r\n");
  EXPECT_FALSE(client.broken());
  EXPECT_EQ(half_closed.times(), 1);
}

// The client may have disconnected, so its exchange is not kept for ever.
TEST(HttpStream, AHalfClosedConnectionIsDroppedAfterItsTimeout) {
  auto options = testing::options();
  options.half_close_timeout = milliseconds(20);
  Held held(options);
  RawClient waiting(held.server());
  waiting.send(kGet);
  waiting.end_output();
  const auto exchange = held.take();
  Flag closed;
  exchange->on_close([&] { closed.raise(); });
  const auto response = waiting.response();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_EQ(waiting.until_end(), "");
  EXPECT_TRUE(closed.wait());

  RawClient reading(held.server());
  reading.send(kGet);
  const auto stream = held.take();
  stream->start({200, {}, "part"});
  reading.end_output();
  EXPECT_FALSE(reading.until_end().ends_with("0\r\n\r\n"));
  EXPECT_TRUE(reading.broken());
}

TEST(HttpStream, OnCloseIsCalledIfItIsSetAfterTheDisconnect) {
  Held held;
  std::optional<RawClient> client(held.server());
  client->send(kGet);
  const auto exchange = held.take();
  exchange->start({});
  client.reset();
  // Writing fails since the client does not read any more, and the connection is closed.
  EXPECT_TRUE(eventually([&] {
    exchange->write("x");
    return held.server().connections() == 0;
  }));
  Flag closed;
  exchange->on_close([&] { closed.raise(); });
  EXPECT_TRUE(closed.wait());
}

TEST(HttpStream, OnCloseIsNotCalledAfterTheResponse) {
  Held held;
  std::optional<RawClient> client(held.server());
  Flag closed;
  const auto token = std::make_shared<int>(0);
  client->send(kGet);
  auto exchange = held.take();
  exchange->on_close([&closed, token] { closed.raise(); });
  EXPECT_EQ(token.use_count(), 2);
  exchange->respond({});
  EXPECT_EQ(client->response().status, 200);
  EXPECT_TRUE(eventually([&] { return token.use_count() == 1; })) << "the callback is still kept";
  client.reset();
  EXPECT_TRUE(eventually([&] { return held.server().connections() == 0; }));
  EXPECT_EQ(closed.times(), 0);
  // Nor if the client disconnects before it has read the whole response.
  client.emplace(held.server());
  client->send(kGet);
  exchange = held.take();
  exchange->on_close([&closed] { closed.raise(); });
  exchange->respond({200, {}, std::string(64 << 20, 'x')});
  client->until("\r\n\r\n");
  client.reset();
  EXPECT_TRUE(eventually([&] { return held.server().connections() == 0; }));
  EXPECT_EQ(closed.times(), 0);
}

TEST(HttpStream, AClientThatDoesNotReadIsDisconnectedAtTheLimit) {
  auto options = testing::options();
  options.max_unsent_bytes = 1 << 20;
  Held held(options);
  RawClient client(held.server());
  client.send(kGet);
  const auto exchange = held.take();
  Flag closed;
  exchange->on_close([&] { closed.raise(); });
  exchange->start({});
  // Far more than the limit and the kernel's buffers together.
  std::size_t most = 0;
  for (int i = 0; i < 10'000 && !exchange->closed(); ++i) {
    exchange->write(std::string(64 << 10, 'x'));
    most = std::max(most, exchange->unsent());
  }
  EXPECT_TRUE(closed.wait());
  EXPECT_TRUE(eventually([&] { return held.server().connections() == 0; }));
  EXPECT_LE(most, (1u << 20) + (64u << 10));
  EXPECT_EQ(exchange->unsent(), 0u);
}

// A writer that observes unsent() and on_drained(): it can send any amount to a reader of any speed.
class Producer : public std::enable_shared_from_this<Producer> {
 public:
  Producer(std::shared_ptr<Exchange> exchange, std::size_t total)
      : exchange_(std::move(exchange)), left_(total) {}
  void run() {
    while (left_ > 0 && exchange_->unsent() < 200'000) {
      const auto size = std::min<std::size_t>(left_, 50'000);
      exchange_->write(std::string(size, 'x'));
      left_ -= size;
    }
    if (left_ == 0) return exchange_->end();
    exchange_->on_drained([self = shared_from_this()] { self->run(); });
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
  std::size_t left_;
};

TEST(HttpStream, OnDrainedCarriesALargeStreamToASlowReader) {
  static constexpr std::size_t kTotal = 30 << 20;
  auto options = testing::options();
  options.max_unsent_bytes = 300'000;
  TestServer test(
      [](const std::shared_ptr<Exchange>& exchange) {
        exchange->start({});
        std::make_shared<Producer>(exchange, kTotal)->run();
      },
      options);
  RawClient client(test.server);
  client.send(kGet);
  client.until("\r\n\r\n");
  client.send(kGet);  // waits until the stream has ended
  std::size_t received = 0;
  while (received < kTotal) {
    const auto size = std::stoul(client.until("\r\n"), nullptr, 16);
    ASSERT_GT(size, 0u);
    ASSERT_LE(size, 300'000u);
    received += size;
    client.until(std::string(size, 'x') + "\r\n");
  }
  EXPECT_EQ(received, kTotal);
}

// A clock that throws once when the date of a response is read.
class FailingClock final : public Clock {
 public:
  MonotonicTime now() const override { return clock_.now(); }
  std::int64_t wall_ms() const override {
    if (fails.exchange(false)) throw std::runtime_error("injected failure of the clock");
    return clock_.wall_ms();
  }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    return clock_.wait_until(lock, changed, deadline, done);
  }

  mutable std::atomic<bool> fails = false;

 private:
  SystemClock clock_;
};

TEST(HttpStream, AResponseThatFailsClosesItsOwnConnectionOnly) {
  auto options = testing::options();
  options.threads = 1;
  FailingClock clock;
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  Flag came, held_up, go_on;
  Server server(options, clock, [&](std::shared_ptr<Exchange> exchange) {
    std::lock_guard lock(mutex);
    exchanges.push_back(std::move(exchange));
    came.raise();
  });
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 1; i <= 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server));
    clients.back()->send(kGet);
    ASSERT_TRUE(came.wait(i));
  }
  // Calls that are made while the io thread is blocked are served together afterwards.
  exchanges[0]->after(milliseconds(0), [&] {
    held_up.raise();
    go_on.wait();
  });
  ASSERT_TRUE(held_up.wait());
  clock.fails = true;
  exchanges[1]->respond({200, {}, "fails"});
  exchanges[2]->respond({200, {}, "answered"});
  go_on.raise();
  EXPECT_EQ(clients[2]->response().body, "answered");
  EXPECT_EQ(clients[1]->until_end(), "");
  exchanges[0]->respond({200, {}, "too"});
  EXPECT_EQ(clients[0]->response().body, "too");
  server.stop();
}

TEST(HttpStream, OnDrainedIsCalledIfNothingIsUnsent) {
  Held held;
  RawClient client(held.server());
  client.send(kGet);
  const auto exchange = held.take();
  Flag drained;
  exchange->on_drained([&] { drained.raise(); });
  EXPECT_TRUE(drained.wait());
  exchange->respond({});
}

TEST(HttpStream, TimersFireUnlessCancelled) {
  Held held;
  RawClient client(held.server());
  client.send(kGet);
  const auto exchange = held.take();
  Flag beat;
  std::atomic<bool> cancelled_ran = false;
  const auto token = std::make_shared<int>(0);
  exchange->start({});
  const auto timer = exchange->after(milliseconds(20), [&cancelled_ran, token] { cancelled_ran = true; });
  exchange->cancel(timer);
  exchange->cancel(timer);
  exchange->cancel(12345);
  EXPECT_EQ(token.use_count(), 1) << "a cancelled timer's callback is still kept";
  std::function<void()> again = [&] {
    exchange->write("\n");
    beat.raise();
    if (beat.times() < 3) exchange->after(milliseconds(20), again);
  };
  exchange->after(milliseconds(0), again);
  EXPECT_TRUE(beat.wait(3));
  EXPECT_FALSE(cancelled_ran);
  exchange->end();
  EXPECT_EQ(client.response().body, "\n\n\n");
}

TEST(HttpStream, TimersEndWithTheirExchange) {
  Held held;
  RawClient client(held.server());
  const auto token = std::make_shared<int>(0);
  Flag second;
  client.send(kGet);
  auto exchange = held.take();
  // The callback owns the exchange, as those of feeds do.
  exchange->after(milliseconds(30), [exchange, token] { ADD_FAILURE() << "the exchange has ended"; });
  exchange->respond({});
  exchange.reset();
  EXPECT_EQ(client.response().status, 200);
  EXPECT_TRUE(eventually([&] { return token.use_count() == 1; }));
  // The next exchange's timers have the same ids.
  client.send(kGet);
  exchange = held.take();
  exchange->after(milliseconds(60), [&] { second.raise(); });
  EXPECT_TRUE(second.wait());
  exchange->respond({});
}

TEST(HttpStream, ManyStreamsAreOpenAtOnce) {
  Held held;
  constexpr int kStreams = 300;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<RawClient>(held.server()));
    clients.back()->send(kGet);
    exchanges.push_back(held.take());
    exchanges.back()->start({});
  }
  for (int i = 0; i < kStreams; ++i) exchanges[i]->write("news\n");
  for (auto& client : clients) EXPECT_TRUE(client->until("news\n").ends_with("news\n"));
  EXPECT_EQ(held.server().connections(), std::size_t{kStreams});
}

}  // namespace
}  // namespace divan::http
