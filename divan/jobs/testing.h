// Shared by tests of the queue: a queue on its own store, whose rows are checked at the end.
#pragma once

#include <gmock/gmock.h>

#include "divan/jobs/check.h"
#include "divan/jobs/maintenance.h"
#include "divan/jobs/queue.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/forwarding.h"

namespace divan::jobs {

struct QueueTest : testing::Test {
  static constexpr std::int64_t kNow = 1'000'000;  // the initial time

  explicit QueueTest(std::int64_t now_ms = kNow) : clock(now_ms) {}

  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  workers::Registry registry{rng};
  Queue queue{registry, clock, rng};

  template <class Fn>
  auto in_tx(Fn&& fn) {
    return store->run(std::forward<Fn>(fn));
  }

  // Like the maintenance's thread: runs a step whenever one is due.
  void pass(Maintenance& maintenance, Duration duration) {
    for (const MonotonicTime end = clock.now() + duration;;) {
      const MonotonicTime next = maintenance.step();
      if (next > end) return clock.advance(end - clock.now());
      clock.advance(next - clock.now());
    }
  }

  void TearDown() override { check_store(); }
  // Checks all rows as `divan verify` does.
  void check_store() {
    kv::testing::MapRows rows(*store);
    kv::Findings findings;
    Check check(in_tx([](kv::Transaction& tx) { return tx.read_version(); }), findings);
    kv::testing::run_checks(rows, {&check});
    EXPECT_EQ(findings.count(), 0u);
  }
};

// A store that calls a function before one of its transactions begins.
class EventfulStore final : public kv::ForwardingDatabase {
 public:
  // `number` is that transaction's number, from 1 on.
  EventfulStore(kv::Database& inner, int number, std::function<void()> event)
      : ForwardingDatabase(inner), number_(number), event_(std::move(event)) {}
  std::unique_ptr<kv::Transaction> begin() override {
    if (++begun_ == number_) event_();
    return inner().begin();
  }

 private:
  const int number_;
  const std::function<void()> event_;
  int begun_ = 0;
};

}  // namespace divan::jobs
