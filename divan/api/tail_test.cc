// Tails, with feeds over real connections.
#include <fmt/core.h>

#include <utility>

#include "divan/api/testing.h"
#include "divan/docs/sequence.h"

namespace divan::api {
namespace {

using http::testing::eventually;
using http::testing::RawClient;
using testing::HasSubstr;
using testing::Not;

kv::Versionstamp position(std::uint16_t number) { return kv::Versionstamp::complete("0123456789", number); }

// A source to which a test adds rows; counts its reads.
class Rows final : public RowReader {
 public:
  explicit Rows(events::Bus& bus) : bus_(bus) {}

  void add(const std::string& key, const std::string& text = {}) {
    {
      std::lock_guard lock(mutex_);
      const auto number = static_cast<std::uint16_t>(rows_.size() + 1);
      rows_.push_back({position(number), key, {key + text, docs::to_sequence(position(number))}});
    }
    notify();
  }
  void notify() {
    bus_.publish("rows", [] { return events::Event{}; });
  }
  void end() {
    ended_ = true;
    notify();
  }

  RowPage read(const kv::Versionstamp& since, std::size_t limit, const RowFilter& filter) const override {
    if (on_read) on_read(filter);
    ++reads;
    if (failures > 0) {
      --failures;
      throw std::runtime_error("a failure of the store");
    }
    RowPage page{.position = since, .ended = ended_};
    std::lock_guard lock(mutex_);
    for (const auto& row : rows_) {
      if (row.position <= since) continue;
      if (page.rows.size() == std::min(limit, kPage)) {
        page.more = true;
        break;
      }
      page.position = row.position;
      if (!filter || filter(row.key)) page.rows.push_back(row);
    }
    return page;
  }
  RowPage read_backwards(const kv::Versionstamp&, const std::optional<kv::Versionstamp>&, std::size_t,
                         const RowFilter&) const override {
    return {};
  }
  kv::Versionstamp last() const override {
    if (on_last) on_last();
    std::lock_guard lock(mutex_);
    return rows_.empty() ? kv::Versionstamp() : rows_.back().position;
  }

  std::optional<std::int64_t> pending(const kv::Versionstamp&) const override { return 77; }

  std::function<void()> on_last;
  std::function<void(const RowFilter& filter)> on_read;
  static constexpr std::size_t kPage = 10;
  mutable std::atomic<int> reads = 0;
  mutable std::atomic<int> failures = 0;

 private:
  events::Bus& bus_;
  mutable std::mutex mutex_;
  std::vector<FeedEntry> rows_;
  std::atomic<bool> ended_ = false;
};

struct TailTest : Streams {
  http::testing::Flag reads, resume, waits, woken;
  std::shared_ptr<Rows> rows = std::make_shared<Rows>(bus);

  TailTest() {
    responder = [this](const CallPtr& call) {
      RowFeed feed{.reader = rows, .tail = "rows", .channel = "rows", .pending = true};
      if (const auto only = call->param("only")) {
        feed.filter = [key = *only](std::string_view found) { return found == key; };
      }
      if (const auto since = call->count("since")) feed.since = position(static_cast<std::uint16_t>(*since));
      return respond_with_rows(
          context, *call,
          {.mode = FeedMode::continuous, .limit = call->count("limit"), .heartbeat = std::chrono::hours(1)},
          std::move(feed));
    };
  }

  // A feed that has the head of its response and reads the existing rows.
  std::unique_ptr<RawClient> open(const std::string& query = "") {
    const int before = rows->reads;
    auto client = std::make_unique<RawClient>(test.server);
    client->send("GET /?" + query + " HTTP/1.1\r\nHost: h\r\n\r\n");
    client->until("\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return rows->reads > before; }));
    return client;
  }
};

TEST_F(TailTest, OneReadServesAllFeeds) {
  std::vector<std::unique_ptr<RawClient>> feeds;
  for (int i = 0; i < 20; ++i) feeds.push_back(open());
  const int before = rows->reads;
  rows->add("first");
  for (const auto& feed : feeds) EXPECT_THAT(feed->until("first\n"), HasSubstr("first"));
  EXPECT_EQ(rows->reads, before + 1);
  EXPECT_EQ(tails.stats().own_reads, 0U);
  EXPECT_EQ(tails.stats().tails, 1U);
}

TEST_F(TailTest, EachFeedHasItsOwnFilterAndPosition) {
  rows->add("old");
  const auto all = open("since=1"), filtered = open("since=1&only=b"), behind = open();
  EXPECT_THAT(behind->until("old\n"), HasSubstr("old"));
  rows->add("a");
  rows->add("b");
  EXPECT_THAT(all->until("b\n"), testing::AllOf(HasSubstr("a\n"), Not(HasSubstr("old"))));
  EXPECT_THAT(filtered->until("b\n"), Not(HasSubstr("a\n")));
  EXPECT_THAT(behind->until("b\n"), HasSubstr("a\n"));
}

TEST_F(TailTest, MoreThanAPageArrivesInOrder) {
  const auto feed = open();
  for (int i = 0; i < 95; ++i) rows->add(fmt::format("row{}.", i));
  const std::string text = feed->until("row94.\n");
  std::size_t at = 0;
  for (int i = 0; i < 95; ++i) {
    const std::size_t found = text.find(fmt::format("row{}.", i), at);
    ASSERT_NE(found, std::string::npos) << i;
    at = found;
  }
}

// A tail's memory is bounded: a feed that does not read for a while reads the store itself afterwards.
TEST_F(TailTest, AFeedThatFellBehindReadsTheStore) {
  const auto quick = open(), slow = open();
  const std::string large(100 << 10, 'x');
  constexpr int kRows = 200;  // more than sockets buffer
  for (int i = 0; i < kRows; ++i) {
    rows->add(fmt::format("row{}.", i), large);
    quick->until("x\n");
  }
  EXPECT_EQ(tails.stats().own_reads, 0U);
  for (int i = 0; i < kRows; ++i) EXPECT_THAT(slow->until("x\n"), HasSubstr(fmt::format("row{}.", i)));
  EXPECT_GT(tails.stats().own_reads, 0U);
  const auto own = tails.stats().own_reads;
  rows->add("after.");
  for (const auto& feed : {&quick, &slow}) EXPECT_THAT((*feed)->until(".\n"), HasSubstr("after"));
  EXPECT_EQ(tails.stats().own_reads, own);
}

TEST_F(TailTest, AFailedReadLosesNothing) {
  const auto feed = open();
  rows->failures = 1;  // of the tail; the feed reads the store itself
  rows->add("a");
  EXPECT_THAT(feed->until("a\n"), HasSubstr("a"));
  rows->add("b");
  EXPECT_THAT(feed->until("b\n"), HasSubstr("b"));
  EXPECT_GT(tails.stats().own_reads, 0U);
  // It follows the tail again after its next step.
  EXPECT_TRUE(eventually([&] {
    const auto own = tails.stats().own_reads;
    rows->add("c");
    feed->until("c\n");
    return tails.stats().own_reads == own;
  }));
}

TEST_F(TailTest, FeedsEndWithTheirSubject) {
  const auto feed = open();
  rows->end();
  EXPECT_THAT(feed->until("0\r\n\r\n"), HasSubstr("last_seq"));
}

TEST_F(TailTest, TheTailKnowsTheNumberOfPendingRows) {
  const auto one = open("limit=1"), all = open();
  rows->add("a");
  EXPECT_THAT(one->until("}\n"), HasSubstr(R"("pending":0)"));
  all->until("a\n");
  // A client that has not read from the tail reads the store.
  const auto early = open("limit=1");
  EXPECT_THAT(early->until("}\n"), HasSubstr(R"("pending":77)"));
}

// It has no rows to wait for, and the client reuses the connection.
TEST_F(TailTest, AHeadRequestEndsAtOnce) {
  RawClient client(test.server);
  for (int i = 0; i < 2; ++i) {
    client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(client.until("\r\n\r\n"), HasSubstr("200 OK"));
  }
}

TEST_F(TailTest, ATailEndsWithItsLastFeed) {
  auto feed = open();
  EXPECT_EQ(bus.stats().channels, 2U);  // its own, and that of the server's stop
  feed.reset();
  EXPECT_TRUE(eventually([&] { return bus.stats().channels == 0 && tails.stats().tails == 0; }));
  const auto again = open();
  rows->add("a");
  EXPECT_THAT(again->until("a\n"), HasSubstr("a"));
}

// The tail cannot read the new row, so both feeds read the store.
TEST_F(TailTest, AFeedThatReadsTheStoreDoesNotDelayOthers) {
  const auto slow = open("only=slow"), other = open();
  rows->on_read = [this](const RowFilter& filter) {
    if (filter && filter("slow")) reads.raise(), resume.wait();
  };
  rows->failures = 1;
  rows->add("slow");
  EXPECT_TRUE(reads.wait());
  EXPECT_THAT(other->until("slow\n"), HasSubstr("slow"));
  resume.raise();
  EXPECT_THAT(slow->until("slow\n"), HasSubstr("slow"));
}

TEST_F(TailTest, ASlowStoreDoesNotBlockFollowers) {
  rows->on_last = [this, is_first = std::make_shared<std::atomic<bool>>(true)] {
    if (is_first->exchange(false)) reads.raise(), resume.wait();
  };
  RawClient first(test.server);
  first.send(kGet);
  EXPECT_TRUE(reads.wait());
  const auto second = open();
  rows->add("new");
  EXPECT_THAT(second->until("new\n"), HasSubstr("new"));
  resume.raise();
  EXPECT_THAT(first.until("new\n"), HasSubstr("new"));
}

TEST_F(TailTest, BeforeATailHasAPositionItsFeedsAreWoken) {
  std::shared_ptr<Waker> waker;
  responder = [&](const CallPtr& call) -> Async<RouteResult> {
    RequestWaiter waiter(context, *call);
    waker = waiter.waker();
    waits.raise();
    co_await waiter.wait();
    woken.raise();
    co_return json_response(200, "{}");
  };
  RawClient client(test.server);
  client.send(kGet);
  EXPECT_TRUE(waits.wait());
  rows->on_last = [this] { reads.raise(), resume.wait(); };
  const auto tail = tails.get("rows", "rows", rows);
  std::jthread slow([&] { tail->follow(waker); });
  EXPECT_TRUE(reads.wait());
  rows->add("new");
  EXPECT_TRUE(woken.wait());
  EXPECT_EQ(rows->reads, 0);
  EXPECT_FALSE(tail->read(position(0), 1, nullptr).has_value());
  resume.raise();
}

// Feeds come and go while rows are added from two threads: each receives every row.
TEST_F(TailTest, FeedsThatComeAndGoMissNoRow) {
  constexpr int kRows = 300;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kRows; ++i) rows->add(fmt::format("{}-{}.", t, i));
      rows->add("last");
    });
  }
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 10; ++i) {
        RawClient client(test.server);
        client.send(kGet);
        std::string text = client.until("last\n");
        text += client.until("last\n");
        for (int row = 0; row < kRows; ++row) {
          EXPECT_THAT(text, testing::AllOf(HasSubstr(fmt::format("0-{}.", row)),
                                           HasSubstr(fmt::format("1-{}.", row))));
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(rows->last(), position(2 * kRows + 2));
}

}  // namespace
}  // namespace divan::api
