// The limit of running jobs of a type, over all acceptors.
#include <fmt/core.h>

#include <array>
#include <future>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<std::string> kTypes{"t"};

struct MaxRunning : QueueTest {
  MaxRunning() : QueueTest(0) {}

  // The queue of another process.
  SeededRng rng2{2};
  workers::Registry registry2{rng2};
  Queue queue2{registry2, clock, rng2};

  void limit(std::optional<std::int64_t> most) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.max_running = most}); });
  }
  void add(std::string_view id, const Queue::AddOptions& options = {}) {
    in_tx([&](kv::Transaction& tx) { queue.add(tx, "t", id, "{}", options); });
  }
  void add_many(int count) {
    for (int i = 0; i < count; ++i) add("j" + std::to_string(i));
  }
  std::vector<AcceptedJob> accept(const AcceptOptions& options = {}) {
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, kTypes, options).jobs; });
  }
  void finish(const AcceptedJob& job) {
    in_tx([&](kv::Transaction& tx) { jobs::finish(queue, tx, job.attempt()); });
  }
  std::int64_t running() {
    return in_tx([&](kv::Transaction& tx) { return queue.counts(tx, "t")[State::running]; });
  }
};

TEST_F(MaxRunning, AnAcceptYieldsNoMoreThanTheFreeSlots) {
  limit(3);
  add_many(5);
  EXPECT_EQ(accept({.limit = 2}).size(), 2u);
  EXPECT_EQ(accept({.limit = 10}).size(), 1u);
  EXPECT_EQ(accept({.limit = 10}).size(), 0u);
  EXPECT_EQ(running(), 3);
}

TEST_F(MaxRunning, WithoutALimitAnyNumberRuns) {
  limit(std::nullopt);
  add_many(50);
  EXPECT_EQ(accept({.limit = 100}).size(), 50u);
}

TEST_F(MaxRunning, TwoAcceptsOfOneTransactionShareIt) {
  limit(3);
  add_many(5);
  const auto taken = in_tx([&](kv::Transaction& tx) {
    const auto first = jobs::accept(queue, tx, kTypes, {.limit = 2}).jobs.size();
    return std::pair(first, jobs::accept(queue, tx, kTypes, {.limit = 2}).jobs.size());
  });
  EXPECT_EQ(taken, std::pair(std::size_t{2}, std::size_t{1}));
}

TEST_F(MaxRunning, TypesAtTheirLimitDoNotBlockOthers) {
  limit(1);
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "u", {});
    queue.add(tx, "u", "other", "{}");
  });
  add_many(2);
  const std::vector<std::string> both{"t", "u"};
  const auto take = [&] {
    return in_tx([&](kv::Transaction& tx) { return jobs::accept(queue, tx, both, {.limit = 5}); });
  };
  EXPECT_EQ(take().jobs.size(), 2u);
  in_tx([&](kv::Transaction& tx) { queue.add(tx, "u", "another", "{}"); });
  auto accepted = take();
  ASSERT_EQ(accepted.jobs.size(), 1u);
  EXPECT_EQ(accepted.jobs[0].job.id, "another");
  accepted = take();
  EXPECT_TRUE(accepted.jobs.empty());
  EXPECT_EQ(accepted.full, std::set<std::string>{"t"});
}

// Two acceptors that accept different jobs.
struct TwoAcceptors : MaxRunning {
  std::unique_ptr<kv::Transaction> first, second;
  void begin() {
    add("now");
    add("later", {.scheduled_at = clock.wall_ms() + 1000, .priority = -1});
    first = store->begin();
    second = store->begin();
    EXPECT_EQ(jobs::accept(queue, *first, kTypes, {}).jobs.at(0).job.id, "now");
    EXPECT_EQ(
        jobs::accept(queue2, *second, kTypes, {.max_scheduled_at = clock.wall_ms() + 1000}).jobs.at(0).job.id,
        "later");
  }
};

TEST_F(TwoAcceptors, ThatWouldExceedTheLimitConflict) {
  limit(1);
  begin();
  first->commit();
  EXPECT_THROW(second->commit(), kv::Error);
  EXPECT_EQ(running(), 1);
}

TEST_F(TwoAcceptors, OfATypeWithoutALimitDoNotConflict) {
  limit(std::nullopt);
  begin();
  first->commit();
  second->commit();
  EXPECT_EQ(running(), 2);
}

TEST_F(TwoAcceptors, ThatHaveReadNoLimitConflictWithSettingIt) {
  limit(std::nullopt);
  begin();
  first->commit();
  limit(1);
  EXPECT_THROW(second->commit(), kv::Error);
  EXPECT_EQ(running(), 1);
}

TEST_F(MaxRunning, AnAcceptDoesNotConflictWithTheEndOfAnother) {
  limit(2);
  add_many(3);
  const auto one = accept().at(0);
  auto tx = store->begin();
  EXPECT_EQ(jobs::accept(queue, *tx, kTypes, {}).jobs.size(), 1u);
  finish(one);
  tx->commit();
  EXPECT_EQ(running(), 1);
}

TEST_F(MaxRunning, AnAcceptAtTheLimitWritesNothing) {
  limit(1);
  add_many(2);
  const auto one = accept().at(0);
  auto tx = store->begin();
  EXPECT_TRUE(jobs::accept(queue, *tx, kTypes, {}).jobs.empty());
  finish(one);
  tx->commit();
  EXPECT_EQ(tx->committed_version(), -1);
}

TEST_F(MaxRunning, TheLimitMayBeSetBelowTheNumberOfRunningJobs) {
  limit(3);
  add_many(5);
  const auto jobs = accept({.limit = 3});
  limit(1);
  EXPECT_TRUE(accept().empty());
  finish(jobs[0]);
  EXPECT_TRUE(accept().empty());
  finish(jobs[1]);
  EXPECT_TRUE(accept().empty());
  EXPECT_EQ(running(), 1);
  finish(jobs[2]);
  EXPECT_EQ(accept({.limit = 5}).size(), 1u);
  limit(2);
  EXPECT_EQ(accept({.limit = 5}).size(), 1u);
}

// All ways in which a run ends.
TEST_F(MaxRunning, TheEndOfARunFreesItsSlot) {
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", {.max_attempts = 1, .max_running = 1});
    registry.add(tx, "r", "w", "{}");
  });
  Maintenance maintenance(queue, *store, clock);
  const workers::WorkerRef worker{"r", "w", ""};
  using End = std::function<void(const AcceptedJob&)>;
  const auto with = [&](auto fn) -> End {
    return [this, fn](const AcceptedJob& job) { in_tx([&](kv::Transaction& tx) { fn(tx, job); }); };
  };
  using Tx = kv::Transaction;
  const std::vector<std::pair<std::string, End>> ends = {
      {"finish", with([&](Tx& tx, const AcceptedJob& job) { jobs::finish(queue, tx, job.attempt()); })},
      {"fail", with([&](Tx& tx, const AcceptedJob& job) { jobs::fail(queue, tx, job.attempt(), "no"); })},
      {"release", with([&](Tx& tx, const AcceptedJob& job) { jobs::release(queue, tx, job.attempt()); })},
      {"remove", with([&](Tx& tx, const AcceptedJob& job) { queue.remove(tx, "t", job.job.id); })},
      {"cancel",
       [&](const AcceptedJob& job) {
         in_tx([&](Tx& tx) { queue.cancel(tx, "t", job.job.id); });
         finish(job);
       }},
      {"finish of a resubmitted one",
       with([&](Tx& tx, const AcceptedJob& job) { jobs::finish(queue, tx, job.attempt()); })},
      {"silence", [&](const AcceptedJob&) { pass(maintenance, seconds(31)); }}};
  for (const auto& [name, end] : ends) {
    add("one");
    const auto accepted = accept().at(0);
    if (name == "finish of a resubmitted one") add("one", {.priority = 1});
    add("two");
    EXPECT_TRUE(accept().empty()) << name;
    end(accepted);
    EXPECT_EQ(running(), 0) << name;
    EXPECT_EQ(accept({.limit = 2}).size(), 1u) << name;
    in_tx([&](kv::Transaction& tx) {
      queue.remove_type(tx, "t", true);
      queue.set_type(tx, "t", {.max_attempts = 1, .max_running = 1});
    });
  }
  add_many(2);
  ASSERT_EQ(accept({.worker = worker}).size(), 1u);
  EXPECT_TRUE(accept().empty());
  in_tx([&](kv::Transaction& tx) { registry.remove(tx, *registry.find(tx, "r", "w")); });
  EXPECT_EQ(accept({.limit = 2}).size(), 1u);
}

// The clock does not advance: only watches wake an acceptor.
struct BlockedAcceptor : MaxRunning {
  Acceptor acceptor{queue2, *store, clock};
  std::future<std::vector<AcceptedJob>> accepted;
  ~BlockedAcceptor() override { acceptor.interrupt(); }

  void block() {
    accepted = std::async(std::launch::async,
                          [this] { return acceptor.accept(kTypes, {}, clock.now() + hours(1)); });
  }
  AcceptedJob wait() {
    if (accepted.wait_for(seconds(60)) != std::future_status::ready)
      throw std::runtime_error("the acceptor does not wake");
    return accepted.get().at(0);
  }
};

TEST_F(BlockedAcceptor, WakesWhenASlotBecomesFree) {
  limit(1);
  add_many(3);
  auto one = accept().at(0);
  for (int i = 0; i < 20; ++i) {
    block();
    // The acceptor usually waits already, but sometimes it has not scanned yet.
    if (i % 2 == 0) std::this_thread::sleep_for(milliseconds(5));
    finish(one);
    add(one.job.id, {.priority = i});
    one = wait();
  }
}

TEST_F(BlockedAcceptor, WakesWhenMoreMayRun) {
  limit(1);
  add_many(2);
  accept();
  block();
  std::this_thread::sleep_for(milliseconds(5));
  limit(2);
  wait();
  EXPECT_EQ(running(), 2);
}

// With and without a limit.
TEST_F(BlockedAcceptor, WakesWhenAPausedTypeIsResumed) {
  for (const auto most : {std::optional<std::int64_t>(), std::optional<std::int64_t>(5)}) {
    in_tx([&](kv::Transaction& tx) { queue.set_type(tx, "t", {.max_running = most, .paused = true}); });
    add("a");
    block();
    std::this_thread::sleep_for(milliseconds(5));
    limit(most);
    finish(wait());
  }
}

TEST_F(MaxRunning, AddsDoNotWakeAnAcceptorThatWaitsForASlot) {
  limit(1);
  add("a");
  accept();
  bool woken = false;
  Acceptor acceptor(queue, *store, clock);
  const auto waiter = acceptor.join(kTypes, {}, [&] { woken = true; });
  EXPECT_FALSE(acceptor.step(waiter).done);
  add("b");
  EXPECT_FALSE(woken);
  limit(2);
  EXPECT_TRUE(woken);
}

// Acceptors of two processes whose transactions overlap in all ways, while jobs end and the limit changes.
TEST_F(MaxRunning, IsNeverExceededHoweverAcceptorsOverlap) {
  constexpr std::size_t kAcceptors = 4;
  SeededRng chance(7);
  // Acceptors accept jobs of different due times, so that they do not only contend for the same job.
  const std::int64_t later = clock.wall_ms() + 1'000'000'000;
  struct Open {
    std::unique_ptr<kv::Transaction> tx;
    std::vector<AcceptedJob> jobs;
  };
  std::array<Open, kAcceptors> open;
  std::vector<AcceptedJob> held;
  std::int64_t most = 2;
  int accepted = 0, refused = 0;
  limit(most);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t number = chance.below(kAcceptors);
    Open& acceptor = open[number];
    switch (chance.below(8)) {
      case 0: add("j" + std::to_string(i), {.scheduled_at = later, .priority = -1}); break;
      case 1: add("j" + std::to_string(i)); break;
      case 2:
        if (chance.below(5) == 0) limit(most = 1 + static_cast<std::int64_t>(chance.below(4)));
        break;
      case 3:
        if (held.empty()) break;
        finish(held.back());
        held.pop_back();
        break;
      case 4:
      case 5: {
        AcceptOptions options{.limit = 1 + chance.below(3)};
        if (number % 2 == 0) options.max_scheduled_at = later;
        acceptor.tx = store->begin();
        acceptor.jobs = jobs::accept(number < 2 ? queue : queue2, *acceptor.tx, kTypes, options).jobs;
        break;
      }
      default:
        if (!acceptor.tx) break;
        try {
          acceptor.tx->commit();
          held.insert(held.end(), acceptor.jobs.begin(), acceptor.jobs.end());
          accepted += static_cast<int>(acceptor.jobs.size());
          if (!acceptor.jobs.empty()) { ASSERT_LE(running(), most) << i; }
        } catch (const kv::Error&) { ++refused; }
        acceptor.tx.reset();
    }
    ASSERT_EQ(running(), static_cast<std::int64_t>(held.size())) << i;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 20);
}

TEST(JobSettings, MaxRunningIsPositiveOrNull) {
  EXPECT_EQ(parse_settings("{}").max_running, std::nullopt);
  EXPECT_EQ(parse_settings(R"({"max_running":1})").max_running, 1);
  const TypeSettings limited{.max_running = 7};
  EXPECT_EQ(parse_settings(R"({"timeout":1000})", limited).max_running, 7);
  EXPECT_EQ(parse_settings(R"({"max_running":null})", limited).max_running, std::nullopt);
  EXPECT_EQ(parse_settings(settings_json(limited)), limited);
  EXPECT_EQ(parse_settings(settings_json({})), TypeSettings());
  for (const auto* most : {"0", "-1", "1.5", "\"2\"", "true", "[]", "9223372036854775808"}) {
    EXPECT_THROW(parse_settings(fmt::format(R"({{"max_running":{}}})", most)), Error) << most;
  }
}

}  // namespace
}  // namespace divan::jobs
