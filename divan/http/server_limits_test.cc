// The server's limits and timeouts.
#include <gtest/gtest.h>

#include "divan/base/json.h"
#include "divan/http/server.h"
#include "divan/http/testing.h"

namespace divan::http {
namespace {

using namespace std::string_literals;

using std::chrono::milliseconds;
using testing::eventually;
using testing::RawClient;
using testing::TestServer;

void ok(const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({200, {}, std::to_string(exchange->request().body().size())});
}

void never(const std::shared_ptr<Exchange>& exchange) {
  ADD_FAILURE() << "a malformed request reached the handler";
  exchange->respond({});
}

// Sends `bytes`, expects an error in CouchDB's form and then the end of the connection.
void expect_refusal(const Server& server, std::string_view bytes, int status, const std::string& error) {
  RawClient client(server);
  client.send(bytes);
  const auto response = client.response();
  EXPECT_EQ(response.status, status) << bytes.substr(0, 200);
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_EQ(response.header("Content-Type"), "application/json");
  const auto body = json::parse_object(response.body);
  EXPECT_EQ(std::string(body.at("error").as_string()), error);
  EXPECT_FALSE(body.at("reason").as_string().empty());
  EXPECT_EQ(client.until_end(), "");
}

TEST(HttpServerLimits, MalformedRequestsAreRejectedAndTheConnectionClosed) {
  TestServer test(never);
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::string bad[] = {
      "GET /\r\n",
      "\x16\x03\x01\x02",
      "GET / HTTP/1.1\r\n\r\n",
      head + "X: \0\r\n\r\n"s,
      head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      head + "Transfer-Encoding: chunked\r\n\r\nnot hexadecimal\r\n",
      head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab",
      head + "Transfer-Encoding: chunked\r\n\r\n2;" + std::string(100'000, 'x'),
  };
  for (const auto& bytes : bad) expect_refusal(test.server, bytes, 400, "bad_request");
}

TEST(HttpServerLimits, TooLargeRequestsAreRejectedWithTheirStatus) {
  auto options = testing::options();
  options.max_body_bytes = 1000;
  TestServer test(never, options);
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  expect_refusal(test.server, head + "X: " + std::string(100'000, 'x'), 431, "headers_too_large");
  expect_refusal(test.server, "GET /" + std::string(100'000, 'x'), 414, "uri_too_long");
  expect_refusal(test.server, "GET /" + std::string(17'000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n", 414,
                 "uri_too_long");
  expect_refusal(test.server, head + "Content-Length: 1001\r\n\r\n", 413, "too_large");
  expect_refusal(test.server, head + "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413,
                 "too_large");
  expect_refusal(test.server, head + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 413, "too_large");
  expect_refusal(test.server, head + "Content-Encoding: br\r\nContent-Length: 5\r\n\r\n12345", 415,
                 "bad_content_type");
}

TEST(HttpServerLimits, ABodyOfTheLimitPasses) {
  auto options = testing::options();
  options.max_body_bytes = 1000;
  TestServer test(ok, options);
  RawClient client(test.server);
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_EQ(client.response().body, "1000");
}

// If the connection were closed at once, the client's send would fail, and many clients then do not read the
// response.
TEST(HttpServerLimits, AnErrorReachesAClientThatContinuesToSend) {
  auto options = testing::options();
  options.max_body_bytes = 1000;
  options.linger_timeout = testing::kPatience * 10;
  TestServer test(never, options);
  RawClient client(test.server);
  EXPECT_TRUE(client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8388608\r\n\r\n"));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(client.send(std::string(1 << 20, 'x')));
  EXPECT_EQ(client.response().status, 413);
  EXPECT_EQ(client.until_end(), "");
  EXPECT_FALSE(client.broken());
}

TEST(HttpServerLimits, ATruncatedBodyIsNotARequest) {
  TestServer test(never);
  for (const auto* bytes : {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345",
                            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
                            "POST / HTTP/1.1\r\nHost:"}) {
    RawClient client(test.server);
    client.send(bytes);
    client.end_output();
    EXPECT_EQ(client.response().status, 400) << bytes;
    EXPECT_EQ(client.until_end(), "");
  }
}

TEST(HttpServerLimits, SlowHeadsAndBodiesTimeOut) {
  auto options = testing::options();
  options.head_timeout = options.body_timeout = milliseconds(40);
  TestServer test(never, options);
  for (const auto* bytes : {"GET", "GET / HTTP/1.1\r\nHost: h\r\n",
                            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345"}) {
    RawClient client(test.server);
    client.send(bytes);
    const auto response = client.response();
    EXPECT_EQ(response.status, 408) << bytes;
    EXPECT_EQ(response.header("Connection"), "close");
    EXPECT_EQ(client.until_end(), "");
  }
}

// Each byte arrives in time, but the head as a whole would take forever.
TEST(HttpServerLimits, AHeadThatTricklesTimesOutAsAWhole) {
  auto options = testing::options();
  options.head_timeout = milliseconds(200);
  TestServer test(never, options);
  RawClient client(test.server);
  client.send("GET / HTTP/1.1\r\nX: ");
  EXPECT_TRUE(eventually([&] {
    client.send("x");
    return client.readable();
  }));
  EXPECT_EQ(client.response().status, 408);
}

TEST(HttpServerLimits, IdleConnectionsAreClosed) {
  auto options = testing::options();
  options.idle_timeout = milliseconds(40);
  TestServer test(ok, options);
  RawClient fresh(test.server);
  EXPECT_EQ(fresh.until_end(), "");
  RawClient used(test.server);
  used.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(used.response().status, 200);
  EXPECT_EQ(used.until_end(), "");
  EXPECT_TRUE(eventually([&] { return test.server.connections() == 0; }));
}

// No timeout runs while the handler works on a request.
TEST(HttpServerLimits, AConnectionIsIdleOnlyAfterItsResponse) {
  auto options = testing::options();
  options.idle_timeout = milliseconds(20);
  TestServer test(
      [](const std::shared_ptr<Exchange>& exchange) {
        exchange->after(milliseconds(100), [exchange] { ok(exchange); });
      },
      options);
  RawClient client(test.server);
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.response().status, 200);
  EXPECT_EQ(client.until_end(), "");
}

TEST(HttpServerLimits, AResponseThatIsNotReadTimesOut) {
  auto options = testing::options();
  options.send_timeout = milliseconds(40);
  TestServer test(
      [](const std::shared_ptr<Exchange>& exchange) {
        exchange->respond({200, {}, std::string(64 << 20, 'x')});
      },
      options);
  RawClient client(test.server);
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.until("\r\n").substr(0, 12), "HTTP/1.1 200");
  EXPECT_TRUE(eventually([&] { return test.server.connections() == 0; }));
}

TEST(HttpServerLimits, ConnectionsBeyondTheLimitAreRefused) {
  auto options = testing::options();
  options.max_connections = 2;
  TestServer test(ok, options);
  {
    RawClient first(test.server), second(test.server);
    for (auto* client : {&first, &second}) {
      client->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
      EXPECT_EQ(client->response().status, 200);
    }
    RawClient third(test.server);
    const auto response = third.response();
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(json::parse_object(response.body).at("error").as_string(), "too_many_connections");
    EXPECT_EQ(third.until_end(), "");
    EXPECT_EQ(test.server.connections(), 2u);
  }
  EXPECT_TRUE(eventually([&] { return test.server.connections() == 0; }));
  RawClient again(test.server);
  again.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(again.response().status, 200);
}

// While a request is in progress, pipelined bytes are read up to the limit only.
TEST(HttpServerLimits, PipelinedBytesAreBounded) {
  auto options = testing::options();
  std::shared_ptr<Exchange> held;
  testing::Flag asked;
  TestServer test(
      [&](std::shared_ptr<Exchange> exchange) {
        if (exchange->request().path() != "/hold") return ok(exchange);
        held = std::move(exchange);
        asked.raise();
      },
      options);
  ClientSocket socket("127.0.0.1", test.server.port(), testing::kPatience, milliseconds(200));
  ASSERT_TRUE(socket.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(asked.wait());
  std::string request =
      "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n" + std::string(60'000, 'x');
  bool blocked = false;
  for (int i = 0; i < 1000 && !blocked; ++i) {
    try {
      ASSERT_TRUE(socket.send(request));
    } catch (const Error&) { blocked = true; }
  }
  EXPECT_TRUE(blocked) << "the server has read 60 MB ahead";
  held->respond({});
  char bytes[16];
  EXPECT_GT(socket.receive(bytes).value_or(0), 0u);
}

}  // namespace
}  // namespace divan::http
