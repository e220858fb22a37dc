#include "divan/http/parser.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace divan::http {
namespace {

using namespace std::string_literals;

constexpr std::string_view kHost = "Host: h\r\n";

std::string get(std::string_view fields) {
  return "GET / HTTP/1.1\r\n" + std::string(kHost) + std::string(fields) + "\r\n";
}

// Feeds `bytes` as a connection would, at most `step` new ones at a time, and returns the requests.
std::vector<Request> parse(std::string_view bytes, std::size_t step = std::string_view::npos,
                           const ParserLimits& limits = {}) {
  RequestParser parser(limits);
  std::vector<Request> requests;
  std::size_t used = 0, known = 0;
  while (known < bytes.size()) {
    known += std::min(step, bytes.size() - known);
    for (;;) {
      used += parser.feed(bytes.substr(used, known - used));
      if (parser.stage() != RequestParser::Stage::done) break;
      requests.push_back(parser.take());
    }
  }
  EXPECT_EQ(used, bytes.size()) << "unused: " << bytes.substr(used);
  return requests;
}

// The error's status for `bytes`; 0 if they are valid.
int refusal(std::string_view bytes, const ParserLimits& limits = {}) {
  int whole = 0, bytewise = 0;
  try {
    parse(bytes, std::string_view::npos, limits);
  } catch (const Error& error) { whole = error.status(); }
  try {
    parse(bytes, 1, limits);
  } catch (const Error& error) { bytewise = error.status(); }
  EXPECT_EQ(whole, bytewise) << bytes;
  return whole;
}

TEST(HttpRequestParser, AllPartsOfARequest) {
  for (const std::size_t step : {1, 2, 3, 7, 1000}) {
    const auto requests = parse(
        "COPY /a%20b?c=d HTTP/1.1\r\nHOST:h\r\nX-Empty:\r\nX-Folded: one\r\n  two\r\n"
        "content-length: 5\r\n\r\nhello",
        step);
    ASSERT_EQ(requests.size(), 1u) << step;
    EXPECT_EQ(requests[0].method(), "COPY");
    EXPECT_EQ(requests[0].path(), "/a%20b");
    EXPECT_EQ(requests[0].query(), "c=d");
    EXPECT_EQ(requests[0].minor_version(), 1);
    EXPECT_EQ(requests[0].header("Host"), "h");
    EXPECT_EQ(requests[0].header("X-Empty"), "");
    EXPECT_EQ(requests[0].header("X-Folded"), "one two");
    EXPECT_EQ(requests[0].body(), "hello");
  }
}

TEST(HttpRequestParser, RequestsFollowEachOther) {
  const auto bytes =
      "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\r\n"
      "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3;ext=\"a;b\"\r\nabc\r\nA\r\n0123456789\r\n000\r\nTrailer: t\r\n\r\n"
      "GET /3 HTTP/1.0\r\n\r\n"
      "POST /4 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  for (std::size_t step = 1; step < 200; ++step) {
    const auto requests = parse(bytes, step);
    ASSERT_EQ(requests.size(), 4u) << step;
    EXPECT_EQ(requests[0].body(), "abc");
    EXPECT_EQ(requests[1].body(), "abc0123456789");
    EXPECT_EQ(requests[1].header("Trailer"), std::nullopt) << "a trailer is no header";
    EXPECT_EQ(requests[2].minor_version(), 0);
    EXPECT_EQ(requests[3].body(), "");
  }
}

TEST(HttpRequestParser, TheStagesOfARequest) {
  using Stage = RequestParser::Stage;
  RequestParser parser({});
  EXPECT_EQ(parser.stage(), Stage::idle);
  EXPECT_EQ(parser.feed("\r\n"), 2u);
  EXPECT_EQ(parser.stage(), Stage::idle);
  EXPECT_EQ(parser.feed("P"), 0u);
  EXPECT_EQ(parser.stage(), Stage::head);
  const std::string head =
      "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\nConnection: x, "
      "Close\r\n\r\n";
  EXPECT_EQ(parser.feed(head), head.size());
  EXPECT_EQ(parser.stage(), Stage::body);
  EXPECT_TRUE(parser.wants_continue());
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_EQ(parser.feed("a"), 1u);
  EXPECT_FALSE(parser.wants_continue());
  EXPECT_EQ(parser.feed("bGET"), 1u);
  EXPECT_EQ(parser.stage(), Stage::done);
  EXPECT_EQ(parser.take().body(), "ab");
  EXPECT_EQ(parser.stage(), Stage::idle);
}

TEST(HttpRequestParser, KeepAliveDependsOnTheVersion) {
  const std::pair<std::string, bool> cases[] = {
      {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
  };
  for (const auto& [bytes, keep_alive] : cases) {
    RequestParser parser({});
    parser.feed(bytes);
    EXPECT_EQ(parser.keep_alive(), keep_alive) << bytes;
  }
}

TEST(HttpRequestParser, MalformedRequestsAreRejected) {
  const std::string bad[] = {
      "GET /\r\n",
      "GET\r\n",
      "hello world, this is not HTTP\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s,
      "GET / HTTP/1.2\r\nHost: h\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET / http/1.1\r\nHost: h\r\n\r\n",
      " GET / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
      "G@T / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"s,
      "GET / HTTP/1.1\n",
      get("X: a\0b\r\n"s),
      get("X\0: b\r\n"s),
      get("X: a\rb\r\n"),
      get("X : b\r\n"),
      get(": b\r\n"),
      get("no colon\r\n"),
      "GET / HTTP/1.1\r\n\r\n",
      get("Host: h\r\n"),
  };
  for (const auto& bytes : bad) EXPECT_EQ(refusal(bytes), 400) << bytes;
}

TEST(HttpRequestParser, AmbiguousFramingIsRejected) {
  const std::string bad[] = {
      get("Content-Length: 5\r\nContent-Length: 6\r\n"),
      get("Content-Length: 5\r\nContent-Length: 5\r\n"),
      get("Content-Length: 5, 5\r\n"),
      get("Content-Length: +5\r\n"),
      get("Content-Length: -5\r\n"),
      get("Content-Length: 0x5\r\n"),
      get("Content-Length: 5 5\r\n"),
      get("Content-Length:\r\n"),
      get("Content-Length: 18446744073709551616\r\n"),
      get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
      get("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
      get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
  for (const auto& bytes : bad) EXPECT_EQ(refusal(bytes), 400) << bytes;
  for (const auto* coding : {"gzip, chunked", "chunked, gzip", "identity", "xchunked", "", "chunked;q=1"}) {
    EXPECT_EQ(refusal(get("Transfer-Encoding: " + std::string(coding) + "\r\n")), 501) << coding;
  }
}

TEST(HttpRequestParser, MalformedChunksAreRejected) {
  const auto head = get("Transfer-Encoding: chunked\r\n");
  for (const auto& chunks :
       {"x\r\n"s, "-1\r\n"s, "+1\r\n"s, "0x1\r\n"s, "\r\n"s, "1 \r\n"s, " 1\r\n"s, "1\n"s, "1 2\r\n"s,
        "1;\0\r\n"s, "1;\r;\r\n"s, "1\r\nab"s, "1\r\na\n"s, "1\r\na\r\r"s, "1\r\na\r\n\r\n"s, "0\r\n\n"s,
        "0\r\na: b\n"s, "0\r\na: \x01\r\n"s}) {
    EXPECT_EQ(refusal(head + chunks), 400) << chunks;
  }
  for (const auto* chunks :
       {"0;a=\"not closed\r\n\r\n", "0 \t;x\r\n\r\n", "00000000000000000000\r\nany: trailer\r\n\r\n"}) {
    EXPECT_EQ(parse(head + chunks).size(), 1u) << chunks;
  }
}

TEST(HttpRequestParser, Limits) {
  const ParserLimits limits{.max_header_bytes = 1000, .max_target_bytes = 100, .max_body_bytes = 10};
  const auto with_target = [](std::size_t size) {
    return "GET /" + std::string(size - 1, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n";
  };
  EXPECT_EQ(refusal(with_target(100), limits), 0);
  EXPECT_EQ(refusal(with_target(101), limits), 414);
  EXPECT_EQ(refusal("GET /" + std::string(2000, 'a'), limits), 414);

  const auto field = [](std::size_t size) { return "X: " + std::string(size, 'a') + "\r\n"; };
  EXPECT_EQ(refusal(get(field(900)), limits), 0);
  EXPECT_EQ(refusal(get(field(1000)), limits), 431);
  EXPECT_EQ(refusal(get(field(1000)).substr(0, 1010), limits), 431);
  std::string many;
  for (int i = 0; i < 300; ++i) many += "a:\r\n";
  EXPECT_EQ(refusal(get(many), limits), 431);

  const auto body = [](std::size_t size) {
    return get("Content-Length: " + std::to_string(size) + "\r\n") + std::string(size, 'b');
  };
  EXPECT_EQ(refusal(body(10), limits), 0);
  EXPECT_EQ(refusal(body(11), limits), 413);
  const auto chunked = get("Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(refusal(chunked + "5\r\n12345\r\n5\r\n12345\r\n0\r\n\r\n", limits), 0);
  EXPECT_EQ(refusal(chunked + "5\r\n12345\r\n6\r\n", limits), 413);
  EXPECT_EQ(refusal(chunked + "ffffffffffffffff\r\n", limits), 413);
  EXPECT_EQ(refusal(chunked + "10000000000000000\r\n", limits), 413);
  EXPECT_EQ(refusal(chunked + "1;" + std::string(1100, 'x'), limits), 400);
  EXPECT_EQ(refusal(chunked + "0\r\n" + field(1100), limits), 400);
  EXPECT_EQ(refusal(chunked + "0\r\n" + field(500) + field(500), limits), 400);
}

TEST(HttpRequestParser, UnsupportedFeaturesAreNamed) {
  EXPECT_EQ(refusal(get("Expect: something\r\n")), 417);
  EXPECT_EQ(refusal(get("Content-Encoding: identity\r\n")), 0);
  EXPECT_EQ(refusal(get("Content-Encoding: gzip\r\n")), 0);
  EXPECT_EQ(refusal(get("Content-Encoding: gzip, gzip\r\n")), 415);
  try {
    parse(get("Content-Encoding: br\r\n"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 415);
    EXPECT_EQ(error.reason(), "br is not a supported content encoding.");
  }
}

struct ParsedResponse {
  int status;
  std::string body;
  bool done;
};

ParsedResponse parse_response(std::string_view bytes, std::size_t step, bool head_only = false) {
  std::string body;
  ResponseParser parser({}, head_only, [&](std::string_view part) { body += part; });
  std::size_t used = 0;
  for (std::size_t known = 0; known < bytes.size() && !parser.done();) {
    known += std::min(step, bytes.size() - known);
    used += parser.feed(bytes.substr(used, known - used));
  }
  const bool done = parser.done();
  if (!done) parser.feed_end();
  return {parser.status(), body, done};
}

TEST(HttpResponseParser, Framings) {
  for (const std::size_t step : {1, 5, 1000}) {
    auto parsed = parse_response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", step);
    EXPECT_EQ(parsed.body, "abc");
    parsed = parse_response(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
        "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        step);
    EXPECT_EQ(parsed.status, 404);
    EXPECT_EQ(parsed.body, "abc");
    EXPECT_TRUE(parsed.done);
    parsed = parse_response("HTTP/1.0 200 OK\r\n\r\nabc", step);
    EXPECT_EQ(parsed.body, "abc");
    EXPECT_FALSE(parsed.done);
    EXPECT_TRUE(parse_response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", step, true).done);
    EXPECT_TRUE(parse_response("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", step).done);
  }
}

TEST(HttpResponseParser, MalformedAndTruncatedResponsesAreRejected) {
  for (const auto* bytes :
       {"", "H", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzzz\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}) {
    try {
      parse_response(bytes, 1000);
      ADD_FAILURE() << bytes;
    } catch (const Error& error) { EXPECT_EQ(error.status(), 502) << bytes; }
  }
}

}  // namespace
}  // namespace divan::http
