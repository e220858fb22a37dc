// Long answers over real connections: what they do when the client goes away, and when they fail.
#include <future>

#include "divan/api/page_stream.h"
#include "divan/api/testing.h"
#include "divan/base/json.h"
#include "divan/jobs/attempts.h"

namespace divan::api {
namespace {

using http::testing::Flag;
using http::testing::RawClient;

// Pages until `last`; then an exception that is none of ours.
class Pages final : public PageSource {
 public:
  Pages(Flag& gone, std::atomic<int>& number, int last, std::size_t bytes)
      : gone_(gone), number_(number), last_(last), bytes_(bytes) {}
  ~Pages() override { gone_.raise(); }
  bool next(std::string& out) override {
    if (++number_ > last_) throw std::runtime_error("a failure of another kind");
    out.append(bytes_, 'x');
    return true;
  }

 private:
  Flag& gone_;
  std::atomic<int>& number_;
  const int last_;
  const std::size_t bytes_;
};

// Pages of a few bytes, as of a reduction, for which the socket has always room.
TEST_F(Streams, NoPagesAreReadForAClientThatIsGone) {
  constexpr int kMany = 50'000'000;
  Flag gone;
  std::atomic<int> number = 0;
  answerer = [&](const CallPtr& call) {
    stream_pages(context, call, std::make_unique<Pages>(gone, number, kMany, 1));
  };
  {
    RawClient client(test.server);
    client.send(kGet);
    client.until("xxxx");
  }
  EXPECT_TRUE(gone.wait());
  EXPECT_LT(number, kMany);
}

TEST_F(Streams, AnUnforeseenFailureCutsTheConnection) {
  Flag gone;
  std::atomic<int> number = 0;
  answerer = [&](const CallPtr& call) {
    stream_pages(context, call, std::make_unique<Pages>(gone, number, 3, 600 << 10));
  };
  RawClient client(test.server);
  client.send(kGet);
  EXPECT_FALSE(client.until_end().ends_with("0\r\n\r\n"));
  EXPECT_TRUE(gone.wait());
}

// A row, and then much to look at that makes none.
class Rows final : public FeedSource {
 public:
  Rows(Flag& gone, std::atomic<bool>& ended) : gone_(gone), ended_(ended) {}
  ~Rows() override { gone_.raise(); }
  void arm(Task&) override {}
  bool read(std::size_t, std::vector<FeedRow>& rows) override {
    if (!std::exchange(begun_, true)) rows.push_back({"xxxx", "1"});
    return true;
  }
  std::string last_seq() const override { return "1"; }
  bool ended() const override { return ended_; }

 private:
  Flag& gone_;
  std::atomic<bool>& ended_;
  bool begun_ = false;
};

TEST_F(Streams, NoRowsAreReadForAClientThatIsGone) {
  Flag gone;
  std::atomic<bool> ended = false;
  answerer = [&](const CallPtr& call) {
    start_feed(context, call, std::make_unique<Rows>(gone, ended), {.mode = FeedMode::continuous});
  };
  {
    RawClient client(test.server);
    client.send(kGet);
    client.until("xxxx");
  }
  EXPECT_TRUE(gone.wait());
  ended = true;
}

// Requests as the real server answers them, from an administrator.
struct Requests : Streams {
  Requests() {
    answerer = [this](const CallPtr& call) {
      call->set_user({"admin", true});
      try {
        if (auto response = route(context, call)) call->exchange()->respond(*std::move(response));
      } catch (const Error& error) { call->exchange()->respond(http::error_response(error)); }
    };
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

// What was queued, or came on an open connection, while the server was told to stop.
TEST_F(Requests, WhatBeginsAfterTheStopEndsByItself) {
  store->run([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", {});
    queue.add(tx, "t", "j", "{}");
  });
  stop_tasks(context);
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

TEST_F(Requests, AMalformedJobOfABulkKeepsTheOthersUndone) {
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
