#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/http/testing.h"

namespace divan::http {
namespace {

using testing::eventually;
using testing::Flag;
using testing::RawClient;
using testing::TestServer;

constexpr std::uint64_t kMaxStreamed = 64 << 20;

// Streams the bodies of PUT.
ServerOptions streaming_options() {
  auto options = testing::options();
  options.max_body_bytes = 1000;
  options.streamed_body = [](const Request& head) {
    return head.method() == "PUT" ? std::optional(kMaxStreamed) : std::nullopt;
  };
  return options;
}

// Reads a body, `step` bytes at a time, and responds with its size and that of the largest part.
class Counter : public std::enable_shared_from_this<Counter> {
 public:
  Counter(std::shared_ptr<Exchange> exchange, std::size_t step)
      : exchange_(std::move(exchange)), step_(step) {}

  void read() {
    exchange_->read_body(step_, [self = shared_from_this()] { self->take(); });
  }

 private:
  void take() {
    try {
      const auto part = exchange_->take_streamed_body();
      bytes_ += part.data.size();
      largest_ = std::max(largest_, part.data.size());
      if (!part.is_last) return read();
      exchange_->respond({200, {}, fmt::format("{} {}", bytes_, largest_)});
    } catch (const Error& error) { exchange_->fail(error); }
  }

  const std::shared_ptr<Exchange> exchange_;
  const std::size_t step_;
  std::size_t bytes_ = 0;
  std::size_t largest_ = 0;
};

Handler counting(std::size_t step) {
  return [step](const std::shared_ptr<Exchange>& exchange) {
    if (!exchange->has_streamed_body())
      return exchange->respond({200, {}, fmt::format("whole {}", exchange->request().body().size())});
    std::make_shared<Counter>(exchange, step)->read();
  };
}

std::string put(std::string_view fields) {
  return fmt::format("PUT / HTTP/1.1\r\nHost: h\r\n{}\r\n", fields);
}

TEST(HttpStreamedBody, PartsAreAsLargeAsTheHandlerWants) {
  TestServer test(counting(1 << 20), streaming_options());
  RawClient client(test.server);
  for (const std::size_t size : {1, 1000, 3 << 20, 20 << 20}) {
    client.send(put(fmt::format("Content-Length: {}\r\n", size)));
    client.send(std::string(size, 'x'));
    std::size_t bytes = 0, largest = 0;
    const auto response = client.response();
    ASSERT_EQ(std::sscanf(response.body.c_str(), "%zu %zu", &bytes, &largest), 2) << response.body;
    EXPECT_EQ(bytes, size);
    EXPECT_EQ(largest, std::min<std::size_t>(size, 1 << 20));
  }
}

TEST(HttpStreamedBody, InChunksAndBeforeAnotherRequest) {
  TestServer test(counting(3), streaming_options());
  RawClient client(test.server);
  client.send(put("Transfer-Encoding: chunked\r\n"));
  client.send("2\r\nab\r");
  client.send("\n1;x\r\nc\r\n0\r\nTrailer: x\r\n\r\n" + std::string(testing::kGet));
  EXPECT_EQ(client.response().body, "3 3");
  EXPECT_EQ(client.response().body, "whole 0");
  client.send(put("Content-Length: 0\r\n") + put("") + std::string(testing::kGet));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.response().body, "whole 0");
}

TEST(HttpStreamedBody, ItsEndMayBeThatOfTheClientsSide) {
  TestServer test(counting(1 << 20), streaming_options());
  RawClient client(test.server);
  client.send(put("Content-Length: 3\r\n") + "abc");
  client.end_output();
  EXPECT_EQ(client.response().body, "3 3");
}

// A server that holds the exchange of a request.
struct HoldingServer {
  std::shared_ptr<Exchange> held;
  Flag begun;
  TestServer test{[this](const std::shared_ptr<Exchange>& exchange) {
                    held = exchange;
                    begun.raise();
                  },
                  streaming_options()};
};

TEST(HttpStreamedBody, ContinueIsSentWhenTheBodyIsRead) {
  HoldingServer holding;
  auto& [held, begun, test] = holding;
  RawClient client(test.server);
  client.send(put("Expect: 100-continue\r\nContent-Length: 3\r\n"));
  ASSERT_TRUE(begun.wait());
  EXPECT_FALSE(client.readable());
  std::make_shared<Counter>(std::exchange(held, nullptr), 1)->read();
  EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(client.response().body, "3 1");
}

TEST(HttpStreamedBody, NothingIsReadThatTheHandlerDoesNotWant) {
  HoldingServer holding;
  auto& [held, begun, test] = holding;
  RawClient client(test.server);
  constexpr std::size_t kSize = 32 << 20;  // more than the sockets hold
  client.send(put(fmt::format("Content-Length: {}\r\n", kSize)));
  Flag sent;
  std::thread sender([&] {
    client.send(std::string(kSize, 'x'));
    sent.raise();
  });
  ASSERT_TRUE(begun.wait());
  EXPECT_TRUE(held->take_streamed_body().data.empty());
  Flag read;
  held->read_body(1, [&] { read.raise(); });
  ASSERT_TRUE(read.wait());
  const auto size = held->take_streamed_body().data.size();
  EXPECT_EQ(size, 1u);
  EXPECT_EQ(sent.times(), 0);
  std::make_shared<Counter>(std::exchange(held, nullptr), 1 << 20)->read();
  EXPECT_TRUE(client.response().body.starts_with(std::to_string(kSize - size)));
  sender.join();
}

TEST(HttpStreamedBody, AResponseBeforeItsEndClosesTheConnection) {
  TestServer test(
      [](const std::shared_ptr<Exchange>& exchange) {
        exchange->respond({403, {}, "no"});
      },
      streaming_options());
  for (const bool sends : {true, false}) {
    RawClient client(test.server);
    client.send(put("Content-Length: 10\r\n") + (sends ? "abc" : ""));
    const auto response = client.response();
    EXPECT_EQ(response.status, 403);
    EXPECT_EQ(response.header("Connection"), "close");
    client.send("defghij" + std::string(testing::kGet));
    EXPECT_EQ(client.until_end(), "");
  }
}

TEST(HttpStreamedBody, OneThatIsTooLargeOrMalformed) {
  TestServer test(counting(1 << 20), streaming_options());
  RawClient announced(test.server);
  announced.send(put(fmt::format("Content-Length: {}\r\n", kMaxStreamed + 1)));
  EXPECT_EQ(announced.response().status, 413);
  RawClient chunked(test.server);
  chunked.send(put("Transfer-Encoding: chunked\r\n") + fmt::format("{:x}\r\n", kMaxStreamed + 1));
  EXPECT_EQ(chunked.response().status, 413);
  RawClient malformed(test.server);
  malformed.send(put("Transfer-Encoding: chunked\r\n") + "2\r\nabc");
  EXPECT_EQ(malformed.response().status, 400);
  EXPECT_EQ(malformed.until_end(), "");
}

TEST(HttpStreamedBody, OneThatEndsEarlyLosesTheConnection) {
  for (const bool resets : {true, false}) {
    Flag begun, closed, responded;
    TestServer test(
        [&](const std::shared_ptr<Exchange>& exchange) {
          exchange->on_close([&, exchange] {
            EXPECT_TRUE(exchange->closed());
            closed.raise();
          });
          exchange->read_body(1000, [&] { responded.raise(); });
          begun.raise();
        },
        streaming_options());
    std::optional<RawClient> client(test.server);
    client->send(put("Content-Length: 1000\r\n") + std::string(999, 'x'));
    ASSERT_TRUE(begun.wait());
    if (resets) {
      client->reset_at_close();
      client.reset();
    } else {
      client->end_output();
    }
    EXPECT_TRUE(closed.wait());
    EXPECT_EQ(responded.times(), 0);
    EXPECT_TRUE(eventually([&] { return test.server.connections() == 0; }));
  }
}

TEST(HttpStreamedBody, OneThatDoesNotArriveTimesOut) {
  auto options = streaming_options();
  options.body_timeout = std::chrono::milliseconds(50);
  TestServer test(counting(1 << 20), options);
  RawClient client(test.server);
  client.send(put("Content-Length: 1000\r\n") + "x");
  const auto response = client.response();
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("did not arrive in time"), std::string::npos);
  EXPECT_EQ(client.until_end(), "");
}

}  // namespace
}  // namespace divan::http
