// Streamed responses over real connections: when the client disconnects, and when they fail.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <utility>

#include "divan/api/page_stream.h"
#include "divan/api/testing.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/writer.h"
#include "divan/jobs/attempts.h"

namespace divan::api {
namespace {

using http::testing::Flag;
using http::testing::RawClient;

// Pages until `last`; then an exception other than Error.
class Pages final : public PageSource {
 public:
  Pages(Flag& destroyed, std::atomic<int>& number, int last, std::size_t bytes)
      : destroyed_(destroyed), number_(number), last_(last), bytes_(bytes) {}
  ~Pages() override { destroyed_.raise(); }
  bool next(std::string& out) override {
    if (++number_ > last_) throw std::runtime_error("a failure of another kind");
    out.append(bytes_, 'x');
    return true;
  }

 private:
  Flag& destroyed_;
  std::atomic<int>& number_;
  const int last_;
  const std::size_t bytes_;
};

// Pages of a few bytes, as of a reduction, for which the socket always has space.
TEST_F(Streams, NoPagesAreReadForADisconnectedClient) {
  constexpr int kMany = 50'000'000;
  Flag destroyed;
  std::atomic<int> number = 0;
  responder = [&](const CallPtr& call) {
    return stream_pages(context, *call, std::make_unique<Pages>(destroyed, number, kMany, 1));
  };
  {
    RawClient client(test.server);
    client.send(kGet);
    client.until("xxxx");
  }
  EXPECT_TRUE(destroyed.wait());
  EXPECT_LT(number, kMany);
}

TEST_F(Streams, AnUnexpectedExceptionClosesTheConnection) {
  Flag destroyed;
  std::atomic<int> number = 0;
  responder = [&](const CallPtr& call) {
    return stream_pages(context, *call, std::make_unique<Pages>(destroyed, number, 3, 600 << 10));
  };
  RawClient client(test.server);
  client.send(kGet);
  EXPECT_FALSE(client.until_end().ends_with("0\r\n\r\n"));
  EXPECT_TRUE(destroyed.wait());
}

// The names of the threads that read its pages, two of them.
class NamedThreads {
 public:
  explicit NamedThreads(std::vector<std::string>& names) : names_(names) {}
  bool next(std::string& out) {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    names_.emplace_back(name);
    out += "x";
    return names_.size() < 2;
  }

 private:
  std::vector<std::string>& names_;
};

TEST_F(Streams, SearchesRunOnTheirOwnThreads) {
  std::vector<std::string> names;
  responder = [&](const CallPtr& call) {
    return stream_pages(context, *call, std::make_unique<SearchPagesOf<NamedThreads>>(1, names));
  };
  EXPECT_EQ(http::Client("127.0.0.1", test.server.port()).request("GET", "/").status, 200);
  EXPECT_EQ(names, (std::vector<std::string>{"search", "search"}));
}

// Throws an error before the response has begun.
class Failing final : public PageSource {
 public:
  explicit Failing(Error error) : error_(std::move(error)) {}
  bool next(std::string&) override { throw error_; }

 private:
  const Error error_;
};

TEST_F(Streams, EveryServerErrorIsLoggedWithItsRequest) {
  kv::embedded::TemporaryDirectory directory;
  const std::string path = directory.path() + "/log";
  log::configure(log::Level::info, path);
  std::vector<int> statuses;
  const auto ask = [&](const std::string& target, Responder how) {
    responder = std::move(how);
    statuses.push_back(http::Client("127.0.0.1", test.server.port()).request("GET", target).status);
  };
  ask("/stream?n=1", [&](const CallPtr& call) {
    return stream_pages(context, *call, std::make_unique<Failing>(internal_error("damaged.")));
  });
  ask("/stream?n=2", [&](const CallPtr& call) {
    return stream_pages(context, *call,
                        std::make_unique<Failing>(Error(501, "not_implemented", "not there.")));
  });
  ask("/stream?n=3", [&](const CallPtr& call) {
    return stream_pages(context, *call, std::make_unique<Failing>(not_found("not to be logged.")));
  });
  ask("/forgotten", [](const CallPtr&) -> Async<RouteResult> { co_return std::nullopt; });
  // A client that resets its connection while its request waits is not an error of the server.
  Flag waiting, released;
  responder = [&](const CallPtr& call) -> Async<RouteResult> {
    const std::shared_ptr<void> last(nullptr, [&](void*) { released.raise(); });
    call->exchange()->on_close([last, call] {});
    waiting.raise();
    co_return std::nullopt;
  };
  {
    RawClient client(test.server);
    client.send("GET /reset HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_TRUE(waiting.wait());
    client.reset_at_close();
  }
  EXPECT_TRUE(released.wait());
  log::configure(log::Level::info);
  EXPECT_EQ(statuses, (std::vector{500, 501, 404, 500}));
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, testing::HasSubstr("GET /stream?n=1: 500 internal_server_error: damaged."));
  EXPECT_THAT(text,
              testing::HasSubstr("GET /forgotten: 500 internal_server_error: The handler did not respond"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

// One row, and then an endless scan without rows.
class OneRow final : public FeedSource {
 public:
  OneRow(Flag& destroyed, std::atomic<bool>& ended) : destroyed_(destroyed), ended_(ended) {}
  ~OneRow() override { destroyed_.raise(); }
  void arm(const RequestWaiter&) override {}
  bool read(std::size_t, std::vector<FeedRow>& rows) override {
    if (!std::exchange(begun_, true)) rows.push_back({"xxxx", "1"});
    return true;
  }
  std::string last_seq() const override { return "1"; }
  bool ended() const override { return ended_; }

 private:
  Flag& destroyed_;
  std::atomic<bool>& ended_;
  bool begun_ = false;
};

TEST_F(Streams, NoRowsAreReadForADisconnectedClient) {
  Flag destroyed;
  std::atomic<bool> ended = false;
  responder = [&](const CallPtr& call) {
    return respond_with_feed(context, *call, std::make_unique<OneRow>(destroyed, ended),
                             {.mode = FeedMode::continuous});
  };
  {
    RawClient client(test.server);
    client.send(kGet);
    client.until("xxxx");
    client.reset_at_close();
  }
  EXPECT_TRUE(destroyed.wait());
  ended = true;
}

// Requests as the real server handles them, from an administrator.
struct Requests : Streams {
  Requests() {
    responder = [this](const CallPtr& call) { return route(context, call); };
  }
  http::ClientResponse get(const std::string& target) {
    return http::Client("127.0.0.1", test.server.port()).request("GET", target);
  }
};

TEST_F(Requests, ALongPollOfAJobWaitsForAStateThatTheClientDoesNotHave) {
  const std::vector<std::string> types{"t"};
  store->run([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", {});
    queue.add(tx, "t", "j", "{}");
  });
  const auto first = json::compact(get("/_jobs/t/j?feed=longpoll").body);
  EXPECT_THAT(first, testing::HasSubstr(R"("state":"pending")"));
  const auto seq = json::string_value(json::member(first, "last_seq").value_or(""));
  ASSERT_TRUE(seq);
  EXPECT_THAT(get("/_jobs/t/j?feed=longpoll&timeout=0&since=" + *seq).body,
              testing::Not(testing::HasSubstr("state")));
  auto second =
      std::async(std::launch::async, [&] { return get("/_jobs/t/j?feed=longpoll&since=" + *seq).body; });
  store->run([&](kv::Transaction& tx) { jobs::accept(queue, tx, types, {}); });
  EXPECT_THAT(second.get(), testing::HasSubstr(R"("state":"running")"));
}

// The side is closed before the request begins.
TEST_F(Requests, AClientThatClosesItsSideGetsAResponse) {
  store->run([&](kv::Transaction& tx) {
    catalog.create(tx, "db");
    queue.set_type(tx, "t", {});
    queue.add(tx, "t", "j", "{}");
  });
  std::vector documents{docs::parse_document(R"({"_id":"a"})")};
  docs::bulk_edit(*store, catalog, "db", documents, rng);
  const auto answer_now = responder;
  responder = [&](const CallPtr& call) {
    EXPECT_TRUE(http::testing::eventually([&] { return call->exchange()->half_closed(); }));
    return answer_now(call);
  };
  const auto answers = [&](const std::vector<std::string>& lines, const std::string& body = "") {
    RawClient client(test.server);
    for (const auto& line : lines)
      client.send(
          fmt::format("{} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}", line, body.size(), body));
    client.end_output();
    std::vector<std::string> bodies;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto response = client.response();
      EXPECT_EQ(response.status, 200) << lines[i] << ": " << response.body;
      bodies.push_back(response.body);
    }
    EXPECT_EQ(client.until_end(), "");
    return bodies;
  };
  const auto body_of = [&](const std::string& line) { return answers({line}).front(); };
  EXPECT_THAT(body_of("GET /db/_all_docs"), testing::HasSubstr(R"("id":"a")"));
  EXPECT_THAT(body_of("GET /db/_changes"), testing::HasSubstr(R"("pending":0)"));
  EXPECT_THAT(body_of("GET /_db_updates"), testing::HasSubstr("last_seq"));
  // A request that would wait ends with the existing rows.
  for (const std::string feed : {"longpoll", "continuous", "eventsource"}) {
    const auto ends_with = feed == "eventsource" ? "\n\n" : "}\n";
    const std::string changes = body_of("GET /db/_changes?heartbeat=3600000&feed=" + feed);
    EXPECT_THAT(changes, testing::HasSubstr(R"("id":"a")"));
    EXPECT_THAT(changes, testing::EndsWith(ends_with));
    EXPECT_THAT(body_of("GET /_jobs/t/j?heartbeat=3600000&feed=" + feed), testing::HasSubstr("pending"));
  }
  EXPECT_EQ(json::compact(body_of("GET /db/_changes?feed=longpoll&heartbeat=3600000&since=now"))
                .find(R"({"results":[],"last_seq":)"),
            0u);
  EXPECT_EQ(body_of("GET /_events/c?heartbeat=3600000"), "");
  // Each of several requests gets its response, and none delays the others.
  const auto several = answers({"GET /db/_changes?feed=continuous&heartbeat=3600000", "GET /db/_all_docs",
                                "GET /db/_changes?feed=longpoll&since=now", "GET /db"});
  EXPECT_THAT(several[1], testing::HasSubstr(R"("id":"a")"));
  EXPECT_THAT(several[3], testing::HasSubstr(R"("db_name":"db")"));
  // First there is a job, so that the request need not wait; then there is none.
  EXPECT_THAT(answers({"POST /_jobs/t/_accept"}, "{}").front(), testing::HasSubstr(R"("id":"j")"));
  EXPECT_THAT(answers({"POST /_jobs/t/_accept"}, R"({"timeout":3600000})").front(),
              testing::HasSubstr(R"("jobs":[])"));
  responder = answer_now;
}

// The side is closed after the client has received the existing rows.
TEST_F(Requests, AClientThatClosesItsSideWhileItWaitsGetsAResponse) {
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  std::vector documents{docs::parse_document(R"({"_id":"a"})")};
  docs::bulk_edit(*store, catalog, "db", documents, rng);
  RawClient client(test.server);
  client.send("GET /db/_changes?feed=continuous&heartbeat=3600000 HTTP/1.1\r\nHost: h\r\n\r\n");
  client.until("\"id\":\"a\"");
  client.end_output();
  EXPECT_THAT(client.until_end(), testing::EndsWith("0\r\n\r\n"));
  EXPECT_FALSE(client.broken());
}

// Its connection represents the worker.
TEST_F(Requests, AWorkerThatClosesItsSideIsRemoved) {
  RawClient client(test.server);
  client.send("POST /_workers/r/w/_hold HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  client.until("incarnation");
  client.end_output();
  EXPECT_THAT(client.until_end(), testing::EndsWith("0\r\n\r\n"));
  EXPECT_TRUE(http::testing::eventually([&] {
    return store->run([&](kv::Transaction& tx) { return registry.members(tx, "r").workers.empty(); });
  }));
}

// Also while they begin: half of the clients do not wait for anything. What they have begun ends.
TEST_F(Requests, ClientsMayLeaveWhileTheirRequestsWait) {
  store->run([&](kv::Transaction& tx) {
    catalog.create(tx, "db");
    queue.set_type(tx, "t", {});
    queue.set_type(tx, "empty", {});
    queue.add(tx, "t", "j", "{}");
  });
  const auto post = [](const std::string& path, const std::string& body) {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", path,
        body.size(), body);
  };
  std::vector<std::string> requests;
  for (const std::string path :
       {"/db/_changes?feed=continuous", "/db/_changes?feed=longpoll&since=now",
        "/db/_changes?feed=eventsource", "/_db_updates?feed=continuous", "/_jobs/t/j?feed=continuous",
        "/_jobs/_events?feed=continuous", "/_events/c?feed=continuous", "/_workers/r?feed=continuous"})
    requests.push_back("GET " + path + "&heartbeat=3600000 HTTP/1.1\r\nHost: h\r\n\r\n");
  requests.push_back(post("/_jobs/empty/_accept", R"({"timeout":3600000})"));
  requests.push_back(post("/_jobs/_wait", R"({"timeout":3600000,"jobs":[{"type":"t","id":"j"}]})"));
  requests.push_back(post("/_workers/r/w/_hold", R"({"timeout":3600000})"));
  for (const auto& request : requests) {
    SCOPED_TRACE(request);
    for (int i = 0; i < 20; ++i) {
      const int before = handled;
      RawClient client(test.server);
      client.send(request);
      if (i % 2 == 0) {
        if (request.find("_accept") == std::string::npos && request.find("_wait") == std::string::npos)
          client.until("\r\n\r\n");
        EXPECT_TRUE(http::testing::eventually([&] { return handled > before; }));
      }
      if (i % 4 < 2) client.reset_at_close();
    }
    EXPECT_TRUE(http::testing::eventually([&] { return responding == 0; }));
  }
  // No job goes to a client that has left.
  store->run([&](kv::Transaction& tx) { queue.add(tx, "empty", "k", "{}"); });
  const std::vector<std::string> types{"empty"};
  EXPECT_TRUE(http::testing::eventually([&] {
    return store->run(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.size() == 1; });
  }));
  EXPECT_TRUE(http::testing::eventually([&] {
    return store->run([&](kv::Transaction& tx) { return registry.members(tx, "r").workers.empty(); });
  }));
  EXPECT_TRUE(http::testing::eventually([&] { return bus.stats().channels == 0; }));
}

// Requests that were queued, or arrived on an open connection, while the server was stopping.
TEST_F(Requests, RequestsThatBeginAfterTheStopEnd) {
  store->run([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", {});
    queue.add(tx, "t", "j", "{}");
  });
  stop_waits(context);
  const auto end_of = [&](const std::string& line, const std::string& body) {
    RawClient client(test.server);
    client.send(
        fmt::format("{} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                    "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                    line, body.size(), body));
    return client.until_end();
  };
  EXPECT_THAT(end_of("GET /_jobs/t/j?feed=continuous&heartbeat=3600000", ""), testing::EndsWith("0\r\n\r\n"));
  EXPECT_THAT(end_of("POST /_workers/r/w/_hold", R"({"timeout":3600000})"), testing::HasSubstr(" 503 "));
  EXPECT_THAT(end_of("POST /_jobs/t/_accept", R"({"timeout":3600000})"), testing::HasSubstr(R"("jobs":[])"));
}

TEST_F(Requests, AMalformedJobOfABulkRequestRejectsTheWholeRequest) {
  store->run([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", {});
    queue.add(tx, "t", "j", "{}");
  });
  const std::vector<std::string> types{"t"};
  const auto job =
      store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs.at(0); });
  const std::string good = fmt::format(R"({{"id":"j","lock":"{}"}})", job.job.lock);
  const auto finish = [&](const std::string& jobs) {
    return http::Client("127.0.0.1", test.server.port())
        .request("POST", "/_jobs/t/_finish", R"({"jobs":[)" + jobs + "]}");
  };
  EXPECT_EQ(finish(good + R"(,{"id":"k","unknown":1})").status, 400);
  const auto state = [&] {
    return store->run([&](kv::Transaction& tx) { return queue.find(tx, "t", "j")->state; });
  };
  EXPECT_EQ(state(), jobs::State::running);
  EXPECT_EQ(finish(good).status, 200);
  EXPECT_EQ(state(), jobs::State::finished);
}

TEST_F(Requests, AMalformedLimitOfTheUpdatesFeed) {
  for (const auto* limit : {"x", "-1", ""}) {
    const auto response = get("/_db_updates?limit=" + std::string(limit));
    EXPECT_EQ(response.status, 400);
    EXPECT_THAT(response.body, testing::HasSubstr("invalid_integer"));
  }
}

}  // namespace
}  // namespace divan::api
