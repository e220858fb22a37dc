#include "divan/http/client.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "divan/http/testing.h"

namespace divan::http {
namespace {

using std::chrono::milliseconds;
using testing::Flag;
using testing::TestServer;

constexpr auto kLocal = "127.0.0.1";

// Accepts connections on a free port; for each it sends the bytes that a script names, and closes.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> responses) : responses_(std::move(responses)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    listen(listener_, 10);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::uint16_t port() const { return port_; }
  int served() const { return served_; }

 private:
  void serve() {
    for (const auto& response : responses_) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      char bytes[4096];
      EXPECT_GT(recv(fd, bytes, sizeof bytes, 0), 0);
      EXPECT_EQ(send(fd, response.data(), response.size(), MSG_NOSIGNAL), ssize_t(response.size()));
      ++served_;
      close(fd);
    }
  }

  std::vector<std::string> responses_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> served_ = 0;
  std::thread thread_;
};

std::string encoded_response(std::string_view body) {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
}

// The error that `action` throws.
template <class Action>
Error client_error(Action action) {
  try {
    action();
  } catch (const Error& error) { return error; }
  return {599, "nothing was thrown", ""};
}

TEST(HttpClient, ARequestAsTheServerSeesIt) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    const auto& request = exchange->request();
    exchange->respond(
        {201,
         {{"X-Seen", std::string(request.header("X-Own").value_or("?"))}},
         fmt::format("{} {} {} {} {} {}", request.method(), request.target(),
                     request.header("Host").value_or("?"), request.header("Authorization").value_or("-"),
                     request.header("Content-Length").value_or("-"), request.body())});
  });
  Client client(kLocal, test.server.port(), Credentials{"admin", "secret"});
  const auto response = client.request("POST", "/db?x=y", "body", {{"X-Own", "with space"}});
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.header("x-seen"), "with space");
  EXPECT_EQ(response.body,
            fmt::format("POST /db?x=y 127.0.0.1:{} Basic YWRtaW46c2VjcmV0 4 body", test.server.port()));
  EXPECT_NE(client.request("PUT", "/").body.find(" 0 "), std::string::npos);
  EXPECT_NE(client.request("GET", "/").body.find(" - "), std::string::npos);
  EXPECT_EQ(client.request("HEAD", "/").body, "");
  EXPECT_EQ(test.server.connections(), 1u) << "the connection is kept";
}

TEST(HttpClient, AKeptConnectionThatTheServerHasClosedIsReopened) {
  ScriptedServer server({encoded_response("one"), encoded_response("two"), encoded_response("three")});
  Client client(kLocal, server.port());
  EXPECT_EQ(client.request("GET", "/").body, "one");
  EXPECT_EQ(client.request("GET", "/").body, "two");
  // This holds for a POST too, since the end of the connection is detected before sending.
  EXPECT_TRUE(testing::eventually([&] { return server.served() == 2; }));
  EXPECT_EQ(client.request("POST", "/").body, "three");
}

TEST(HttpClient, ARequestIsRepeatedOnceIfItsConnectionEndsWithoutAResponse) {
  std::atomic<int> asked = 0;
  TestServer test([&](const std::shared_ptr<Exchange>& exchange) {
    // Drop the connection of the second request.
    if (++asked == 2) {
      exchange->start({});
      return;
    }
    exchange->respond({200, {}, std::to_string(asked)});
  });
  Client client(kLocal, test.server.port());
  EXPECT_EQ(client.request("GET", "/").body, "1");
  EXPECT_EQ(client.request("GET", "/").body, "3");
  asked = 0;
  EXPECT_EQ(client.request("POST", "/").body, "1");
  const auto error = client_error([&] { client.request("POST", "/"); });
  EXPECT_EQ(error.name(), "connection_lost");
  EXPECT_EQ(asked, 2) << "a POST must not be repeated";
}

TEST(HttpClient, RefusedConnectionsNameHostAndPort) {
  std::uint16_t port = 0;
  {
    TestServer test([](const std::shared_ptr<Exchange>&) {});
    port = test.server.port();
  }
  Client client(kLocal, port);
  const auto error = client_error([&] { client.request("GET", "/"); });
  EXPECT_EQ(error.status(), 503);
  EXPECT_EQ(error.name(), "connection_failed");
  EXPECT_EQ(error.reason(), fmt::format("Cannot connect to 127.0.0.1:{}: Connection refused.", port));
}

TEST(HttpClient, AServerThatDoesNotRespondTimesOut) {
  auto server_options = testing::options();
  server_options.stop_timeout = milliseconds(0);
  std::vector<std::shared_ptr<Exchange>> held;
  TestServer test([&](std::shared_ptr<Exchange> exchange) { held.push_back(std::move(exchange)); },
                  server_options);
  ClientOptions options;
  options.io_timeout = milliseconds(20);
  Client client(kLocal, test.server.port(), std::nullopt, options);
  const auto error = client_error([&] { client.request("GET", "/"); });
  EXPECT_EQ(error.status(), 504);
  EXPECT_EQ(error.name(), "timeout");
  test.server.stop();
}

TEST(HttpClient, WaitForResponseDisablesTheTimeout) {
  TestServer test([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->after(milliseconds(200), [exchange] { exchange->respond({}); });
  });
  ClientOptions options;
  options.io_timeout = milliseconds(20);
  options.wait_for_response = true;
  Client client(kLocal, test.server.port(), std::nullopt, options);
  EXPECT_EQ(client.request("GET", "/").status, 200);
}

TEST(HttpClient, MalformedAndCutResponsesAreErrors) {
  const std::string bad[] = {
      "nonsense\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'),
  };
  for (const auto& bytes : bad) {
    ScriptedServer server({bytes});
    Client client(kLocal, server.port());
    EXPECT_EQ(client_error([&] { client.request("GET", "/"); }).name(), "bad_response")
        << bytes.substr(0, 100);
  }
}

TEST(HttpClient, AResponseThatIsTooLargeIsAnError) {
  ScriptedServer server({encoded_response(std::string(2000, 'x'))});
  ClientOptions options;
  options.max_body_bytes = 1000;
  Client client(kLocal, server.port(), std::nullopt, options);
  EXPECT_EQ(client_error([&] { client.request("GET", "/"); }).name(), "bad_response");
}

TEST(HttpClient, RequestsThatCannotBeEncodedAreRejected) {
  Client client(kLocal, 1);
  for (const auto* target : {"/a b", "/a\r\nX: y", "/\n"}) {
    EXPECT_EQ(client_error([&] { client.request("GET", target); }).status(), 400) << target;
  }
  EXPECT_EQ(client_error([&] { client.request("GET", "/", {}, {{"X", "a\r\nb"}}); }).status(), 400);
}

TEST(HttpClient, LinesComeAsTheyAreWritten) {
  std::shared_ptr<Exchange> feed;
  Flag asked;
  TestServer test([&](std::shared_ptr<Exchange> exchange) {
    exchange->start({200, {{"X", "y"}}, "one\ntw"});
    feed = std::move(exchange);
    asked.raise();
  });
  Client client(kLocal, test.server.port());
  std::vector<std::string> lines;
  const auto response = client.stream_lines("GET", "/", [&](std::string_view line) {
    lines.emplace_back(line);
    // The server sends the next piece after it sees the line, so the lines cannot have arrived all at once.
    if (lines.size() == 1) {
      EXPECT_TRUE(asked.wait());
      feed->write("o\r\n\n");
    }
    if (lines.size() == 3) {
      feed->write("no line end");
      feed->end();
    }
    return true;
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "no line end"}));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("X"), "y");
  EXPECT_EQ(response.body, "");
  feed.reset();
}

TEST(HttpClient, AStreamThatBreaksIsAnErrorAfterItsLines) {
  std::shared_ptr<Exchange> feed;
  Flag asked;
  TestServer test([&](std::shared_ptr<Exchange> exchange) {
    exchange->start({200, {}, "one\n"});
    feed = std::move(exchange);
    asked.raise();
  });
  Client client(kLocal, test.server.port());
  int lines = 0;
  const auto error = client_error([&] {
    client.stream_lines("GET", "/", [&](std::string_view) {
      ++lines;
      EXPECT_TRUE(asked.wait());
      feed.reset();
      return true;
    });
  });
  EXPECT_EQ(error.name(), "connection_lost") << error.reason();
  EXPECT_EQ(lines, 1);
}

TEST(HttpClient, AStreamEndsWhenTheSinkStops) {
  Flag closed;
  TestServer test([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->start({200, {}, "one\ntwo\nthree\n"});
    exchange->on_half_close([&closed, exchange] { closed.raise(); });
  });
  Client client(kLocal, test.server.port());
  int lines = 0;
  client.stream_lines("GET", "/", [&](std::string_view) { return ++lines < 2; });
  EXPECT_EQ(lines, 2);
  EXPECT_TRUE(closed.wait());
}

TEST(HttpClient, AnErrorInsteadOfAStreamIsABody) {
  TestServer test([](const std::shared_ptr<Exchange>&) { throw not_found("no\nfeed"); });
  Client client(kLocal, test.server.port());
  const auto response = client.stream_lines("GET", "/", [](std::string_view) {
    ADD_FAILURE();
    return true;
  });
  EXPECT_EQ(response.status, 404);
  EXPECT_NE(response.body.find("not_found"), std::string::npos);
}

}  // namespace
}  // namespace divan::http
