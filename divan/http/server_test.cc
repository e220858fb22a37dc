#include "divan/http/server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/base/thread_pool.h"
#include "divan/http/testing.h"

namespace divan::http {
namespace {

using testing::RawClient;
using testing::TestServer;

std::string request_for(std::string_view target, std::string_view fields = {}) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: h\r\n{}\r\n", target, fields);
}

// Responds with the request's method, target and body.
void echo(const std::shared_ptr<Exchange>& exchange) {
  const auto& request = exchange->request();
  exchange->respond(
      {200, {}, fmt::format("{} {} {}", request.method(), request.target(), exchange->take_body())});
}

TEST(HttpServer, AResponseByteForByte) {
  ManualClock clock(784'111'777'500);
  Server server(testing::options(), clock, [](const std::shared_ptr<Exchange>& exchange) {
    EXPECT_EQ(exchange->request().peer(), "127.0.0.1");
    exchange->respond({404, {{"Content-Type", "text/plain"}}, "no\n"});
  });
  RawClient client(server);
  const std::string expected =
      "HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: Divan/test\r\n"
      "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nno\n";
  client.send(request_for("/"));
  EXPECT_EQ(client.until("no\n"), expected);
  // The same connection, a second later.
  clock.advance(std::chrono::seconds(1));
  client.send(request_for("/"));
  EXPECT_NE(client.until("no\n").find("08:49:38 GMT"), std::string::npos);
}

TEST(HttpServer, BodiesWithLengthAndInChunks) {
  TestServer test(echo);
  RawClient client(test.server);
  client.send("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(client.response().body, "PUT /1 hello");
  client.send("POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(client.response().body, "POST /2 abcde");
  const std::string large(5 << 20, 'x');
  client.send(fmt::format("PUT /3 HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", large.size()));
  client.send(large);
  EXPECT_EQ(client.response().body, "PUT /3 " + large);
}

TEST(HttpServer, AThreadThatIsBlockedDoesNotRespond) {
  testing::Flag entered, released;
  TestServer test([&](const std::shared_ptr<Exchange>& exchange) {
    entered.raise();
    EXPECT_TRUE(released.wait());
    exchange->respond({200, {}, ""});
  });
  EXPECT_TRUE(test.server.responds(testing::kPatience));
  RawClient client(test.server);
  client.send(testing::kGet);
  ASSERT_TRUE(entered.wait());
  EXPECT_FALSE(test.server.responds(std::chrono::milliseconds(10)));
  released.raise();
  EXPECT_TRUE(test.server.responds(testing::kPatience));
}

TEST(HttpServer, PipelinedRequestsAreServedInOrder) {
  TestServer test(echo);
  RawClient client(test.server);
  std::string requests;
  for (int i = 0; i < 500; ++i) requests += request_for(fmt::format("/{}", i));
  client.send(requests);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(client.response().body, fmt::format("GET /{} ", i));
}

TEST(HttpServer, PipelinedRequestsDoNotHoldUpOtherClients) {
  auto options = testing::options();
  options.threads = 1;
  testing::Flag first, others_wait;
  std::vector<std::string> targets;
  TestServer test(
      [&](const std::shared_ptr<Exchange>& exchange) {
        targets.emplace_back(exchange->request().target());
        if (targets.back() == "/0") {
          first.raise();
          others_wait.wait();
        }
        exchange->respond({});
      },
      options);
  RawClient eager(test.server), other(test.server);
  other.send(request_for("/before"));
  EXPECT_EQ(other.response().status, 200);
  std::string requests;
  for (int i = 0; i < 500; ++i) requests += request_for(fmt::format("/{}", i));
  eager.send(requests);
  EXPECT_TRUE(first.wait());
  other.send(request_for("/other"));
  others_wait.raise();
  EXPECT_EQ(other.response().status, 200);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(eager.response().status, 200);
  test.server.stop();
  EXPECT_LT(std::find(targets.begin(), targets.end(), "/other") - targets.begin(), 100);
}

// The last of its pipelined requests are handled although its side has been closed in the meantime.
TEST(HttpServer, PipelinedRequestsBeforeTheEndOfTheClientsSideAreServed) {
  TestServer test(echo);
  RawClient client(test.server);
  std::string requests;
  for (int i = 0; i < 500; ++i) requests += request_for(fmt::format("/{}", i));
  client.send(requests);
  client.end_output();
  for (int i = 0; i < 500; ++i) EXPECT_EQ(client.response().body, fmt::format("GET /{} ", i));
}

TEST(HttpServer, HeadIsGetWithoutTheBody) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    if (exchange->request().path() == "/stream") {
      exchange->start({200, {}, "first"});
      exchange->write("second");
      exchange->end();
    } else if (exchange->request().path() == "/own-length") {
      exchange->respond({200, {{"Content-Length", "12345"}}, {}});
    } else {
      exchange->respond({200, {}, "body"});
    }
  });
  RawClient client(test.server);
  const auto head = [&](std::string_view path) {
    client.send(fmt::format("HEAD {} HTTP/1.1\r\nHost: h\r\n\r\n", path));
    return client.response(true);
  };
  EXPECT_EQ(head("/").header("Content-Length"), "4");
  EXPECT_EQ(head("/stream").header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(head("/own-length").header("Content-Length"), "12345");
  // If a body had been sent, the next response would be read after it.
  client.send(request_for("/"));
  EXPECT_EQ(client.response().body, "body");
}

TEST(HttpServer, StatusesWithoutABodyHaveNone) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    const int status = exchange->request().path() == "/204" ? 204 : 304;
    if (exchange->request().query() == "stream") {
      exchange->start({status, {}, "x"});
      exchange->end();
    } else {
      exchange->respond({status, {}, "x"});
    }
  });
  RawClient client(test.server);
  for (const auto* target : {"/204", "/304", "/204?stream", "/304?stream"}) {
    client.send(request_for(target));
    const auto response = client.response();
    EXPECT_EQ(fmt::format("/{}", response.status), std::string(target).substr(0, 4));
    EXPECT_EQ(response.header("Content-Length"), std::nullopt);
    EXPECT_EQ(response.header("Transfer-Encoding"), std::nullopt);
  }
}

TEST(HttpServer, AResetHasAnEmptyBody) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) { exchange->respond({205, {}, "x"}); });
  RawClient client(test.server);
  for (int i = 0; i < 2; ++i) {
    client.send(request_for("/"));
    EXPECT_EQ(client.response().header("Content-Length"), "0");
  }
}

TEST(HttpServer, KeepAliveIsTheClientsChoice) {
  TestServer test(echo);
  {
    RawClient client(test.server);
    client.send(request_for("/", "Connection: close\r\n"));
    const auto answer = client.until_end();
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  }
  {
    RawClient client(test.server);
    client.send("GET /old HTTP/1.0\r\n\r\n");
    const auto answer = client.until_end();
    EXPECT_NE(answer.find("Content-Length: 9\r\nConnection: close\r\n\r\nGET /old "), std::string::npos)
        << answer;
  }
  {
    RawClient client(test.server);
    for (int i = 0; i < 3; ++i) {
      client.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      EXPECT_EQ(client.response().header("Connection"), "keep-alive");
    }
  }
}

TEST(HttpServer, ContinueIsSentToClientsThatWaitForIt) {
  TestServer test(echo);
  RawClient client(test.server);
  for (int i = 0; i < 2; ++i) {
    client.send("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("bo");
    client.send("dy");
    EXPECT_EQ(client.response().body, "PUT / body");
  }
  // A client that does not wait does not get one.
  client.send("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_TRUE(client.until("\r\n").starts_with("HTTP/1.1 200"));
}

TEST(HttpServer, AnErrorThatTheHandlerThrowsIsTheResponse) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    if (exchange->request().path() == "/error") throw not_found("no such document");
    throw std::runtime_error("a secret");
  });
  RawClient client(test.server);
  client.send(request_for("/error") + request_for("/exception"));
  auto response = client.response();
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "{\"error\":\"not_found\",\"reason\":\"no such document\"}\n");
  response = client.response();
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
}

TEST(HttpServer, AnExchangeThatIsDestroyedWithoutAResponseIs500) {
  ThreadPool pool("test", 1, 10);
  TestServer test([&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path() == "/now") return;
    pool.submit([exchange = std::move(exchange)]() mutable { exchange.reset(); });
  });
  RawClient client(test.server);
  client.send(request_for("/now") + request_for("/later"));
  EXPECT_EQ(client.response().status, 500);
  EXPECT_EQ(client.response().status, 500);
}

TEST(HttpServer, OnlyTheFirstResponseCounts) {
  TestServer test([](const std::shared_ptr<Exchange>& exchange) {
    EXPECT_FALSE(exchange->responded());
    exchange->respond({200, {}, "first"});
    EXPECT_TRUE(exchange->responded());
    exchange->respond({500, {}, "second"});
    exchange->start({500, {}, "third"});
    exchange->write("fourth");
    exchange->end();
  });
  RawClient client(test.server);
  client.send(request_for("/") + request_for("/"));
  EXPECT_EQ(client.response().body, "first");
  EXPECT_EQ(client.response().body, "first");
}

TEST(HttpServer, AResponseMayComeFromAnyThread) {
  ThreadPool pool("test", 4, 1000);
  TestServer test([&](std::shared_ptr<Exchange> exchange) {
    ASSERT_TRUE(pool.submit([exchange = std::move(exchange)] { echo(exchange); }));
  });
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&test, c] {
      RawClient client(test.server);
      for (int round = 0; round < 20; ++round) {
        std::string requests;
        for (int i = 0; i < 20; ++i) requests += request_for(fmt::format("/{}/{}", c, i));
        client.send(requests);
        for (int i = 0; i < 20; ++i) ASSERT_EQ(client.response().body, fmt::format("GET /{}/{} ", c, i));
      }
    });
  }
  for (auto& client : clients) client.join();
}

TEST(HttpServer, ResponsesThatTheClientReadsSlowlyArriveComplete) {
  const std::string large(20 << 20, 'x');
  TestServer test([&](const std::shared_ptr<Exchange>& exchange) { exchange->respond({200, {}, large}); });
  RawClient client(test.server);
  client.send(request_for("/") + request_for("/"));
  EXPECT_EQ(client.response().body, large);
  EXPECT_EQ(client.response().body, large);
}

TEST(HttpServer, AClientThatHalfClosesStillGetsItsResponses) {
  ThreadPool pool("test", 1, 10);
  TestServer test([&](std::shared_ptr<Exchange> exchange) {
    pool.submit([exchange = std::move(exchange)] { echo(exchange); });
  });
  RawClient client(test.server);
  client.send(request_for("/1") + request_for("/2"));
  client.end_output();
  EXPECT_EQ(client.response().body, "GET /1 ");
  EXPECT_EQ(client.response().body, "GET /2 ");
  EXPECT_EQ(client.until_end(), "");
}

TEST(HttpServer, CannotListenTwiceOnAPort) {
  TestServer test(echo);
  auto options = testing::options();
  options.port = test.server.port();
  try {
    TestServer second(echo, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.reason().find(fmt::format("127.0.0.1 port {}: ", options.port)), std::string::npos);
  }
  options.address = "localhost?";
  EXPECT_THROW(TestServer(echo, options), Error);
}

TEST(HttpServer, ListensOnIPv6) {
  auto options = testing::options();
  options.address = "::1";
  std::optional<TestServer> test;
  try {
    test.emplace(echo, options);
  } catch (const Error&) { GTEST_SKIP() << "no IPv6 here"; }
  Client client("::1", test->server.port());
  EXPECT_EQ(client.request("GET", "/").body, "GET / ");
}

TEST(HttpServer, AThreadIsIdleIfItHasWaitedForTheRequest) {
  testing::Flag begun, both_sent;
  ServerOptions one_thread = testing::options();
  one_thread.threads = 1;
  TestServer test(
      [&](const std::shared_ptr<Exchange>& exchange) {
        const bool idle = exchange->claim_idle_thread();
        if (exchange->request().path() == "/first") {
          begun.raise();
          both_sent.wait();
        }
        exchange->respond({200, {}, idle ? "idle" : "busy"});
      },
      one_thread);
  RawClient first(test.server), second(test.server);
  const auto ask = [](RawClient& client) {
    client.send(request_for("/"));
    return client.response().body;
  };
  // The thread may still be busy with the previous response.
  for (auto* client : {&first, &second})
    EXPECT_TRUE(testing::eventually([&] { return ask(*client) == "idle"; }));
  first.send(request_for("/first"));
  ASSERT_TRUE(begun.wait());
  second.send(request_for("/second"));
  both_sent.raise();
  EXPECT_EQ(second.response().body, "busy");
  EXPECT_EQ(first.response().status, 200);
  // Once for each event: the second of two requests in one segment never finds it idle.
  EXPECT_TRUE(testing::eventually([&] {
    first.send(request_for("/") + request_for("/"));
    const bool idle = first.response().body == "idle";
    EXPECT_EQ(first.response().body, "busy");
    return idle;
  }));
}

}  // namespace
}  // namespace divan::http
