// Nodes that accept jobs of one type at the same time avoid conflicts.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/testing.h"
#include "divan/kv/forwarding.h"

namespace divan::jobs {
namespace {

using testing::ElementsAre;

const std::vector<std::string> kOneType{"t"};

// A store of several nodes in which another node wins each race.
class Races final : public kv::ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<kv::Transaction> begin() override { return std::make_unique<Race>(*this, inner().begin()); }
  int losses = 0;  // number of following write transactions that conflict
  bool remote = true;

 private:
  class Race final : public kv::ForwardingTransaction {
   public:
    Race(Races& races, std::unique_ptr<kv::Transaction> inner)
        : ForwardingTransaction(std::move(inner)), races_(races) {}
    bool is_remote() const override { return races_.remote; }
    void on_error(const kv::Error&) override { reset(); }  // no pause: the clock stands still

   protected:
    std::string do_commit() override {
      if (!read_only() && races_.losses > 0) {
        --races_.losses;
        throw kv::Error(kv::ErrorCode::not_committed);
      }
      return ForwardingTransaction::do_commit();
    }

   private:
    Races& races_;
  };
};

struct CandidateWindow : QueueTest {
  CandidateWindow() : QueueTest(0) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {}); });
  }

  Races races{*store};
  Acceptor acceptor{queue, races, clock};

  void add(int count, std::int64_t priority = 0) {
    in_tx([&](kv::Transaction& tx) {
      for (int i = 0; i < count; ++i)
        queue.add(tx, "t", fmt::format("{}-{:03}", priority, i), "{}", {.priority = priority});
    });
  }
  std::vector<std::string> accept(std::size_t limit = 1, int losses = 0) {
    races.losses = losses;
    std::vector<std::string> ids;
    for (const auto& job : acceptor.accept(kOneType, {.limit = limit}, clock.now()))
      ids.push_back(job.job.id);
    EXPECT_EQ(races.losses, 0);
    return ids;
  }
  // Returns true if one of several accepts, each after a conflict, does not begin at the front of the queue.
  bool leaves_the_front() {
    std::set<std::string> left;
    for (int i = 0; i < 20; ++i) {
      const auto ids = accept(1, 1);
      if (ids.empty()) break;
      left.insert(ids.front());
    }
    int position = 0;
    for (const auto& id : left) {
      if (id != fmt::format("0-{:03}", position++)) return true;
    }
    return false;
  }
};

TEST_F(CandidateWindow, WithoutARaceTheOrderIsKept) {
  add(100);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(accept(), ElementsAre(fmt::format("0-{:03}", i)));
}

TEST_F(CandidateWindow, AfterAConflictOtherJobsAreAccepted) {
  add(200);
  EXPECT_TRUE(leaves_the_front());
}

TEST_F(CandidateWindow, AStoreOfOneProcessKeepsTheOrder) {
  races.remote = false;
  add(200);
  EXPECT_FALSE(leaves_the_front());
}

TEST_F(CandidateWindow, UnderALimitTheOrderIsKept) {
  in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.max_running = 1000}); });
  add(200);
  EXPECT_FALSE(leaves_the_front());
}

// Jobs that were skipped in front of accepted ones are accepted later, also if a job that is not due follows
// them.
TEST_F(CandidateWindow, AllJobsAreAcceptedOnce) {
  for (const std::size_t limit : {1, 3, 10}) {
    add(500, static_cast<std::int64_t>(limit));
    in_tx([&](kv::Transaction& tx) {
      queue.add(tx, "t", "later", "{}",
                {.scheduled_at = clock.wall_ms() + 1'000'000, .priority = static_cast<std::int64_t>(limit)});
    });
    std::set<std::string> accepted;
    for (int i = 0; accepted.size() < 500 && i < 1000; ++i) {
      const auto ids = accept(limit, i % 3);
      EXPECT_LE(ids.size(), limit);
      for (const auto& id : ids) EXPECT_TRUE(accepted.insert(id).second) << id;
    }
    EXPECT_EQ(accepted.size(), 500u);
    EXPECT_THAT(accept(limit), ElementsAre());
  }
}

TEST_F(CandidateWindow, APriorityComesBeforeTheNext) {
  add(30, 2);
  add(30, 1);
  std::vector<std::string> ids;
  for (int i = 0; i < 60; ++i) ids.push_back(accept(1, i % 2).at(0));
  EXPECT_TRUE(
      std::is_sorted(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; }));
  EXPECT_FALSE(std::is_sorted(ids.begin(), ids.begin() + 30));
}

// The window has a maximum size, however many conflicts there are, and shrinks to 1 after the last one.
TEST_F(CandidateWindow, ItIsBoundedAndShrinks) {
  add(1000);
  accept(1, 20);
  int last = 0;
  for (int i = 0; i < 30; ++i) last = std::max(last, std::stoi(accept(1, 9).at(0).substr(2)));
  EXPECT_GT(last, 10);
  EXPECT_LT(last, 64 + 31);
  for (int i = 0; i < 64; ++i) accept();
  int next = std::stoi(accept().at(0).substr(2));
  for (int i = 0; i < 100; ++i) {
    const int after = std::stoi(accept().at(0).substr(2));
    EXPECT_GT(after, next);
    next = after;
  }
}

// If there are no more jobs than requested, the window is reset.
TEST_F(CandidateWindow, AnEmptyQueueResetsIt) {
  add(1);
  EXPECT_EQ(accept(1, 20).size(), 1u);
  add(100, 1);
  for (int i = 0; i < 10; ++i) EXPECT_THAT(accept(), ElementsAre(fmt::format("1-{:03}", i)));
}

}  // namespace
}  // namespace divan::jobs
