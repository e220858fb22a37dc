// The backoff of a job after a failure.
#include <fmt/core.h>

#include "divan/jobs/attempts.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using std::chrono::milliseconds;

TEST_F(QueueTest, TheBackoffHasJitter) {
  constexpr std::size_t kJobs = 100;
  in_tx([&](kv::Transaction& tx) {
    queue.set_type(tx, "t", {.backoff_min = milliseconds(1000), .backoff_max = milliseconds(4000)});
    for (std::size_t i = 0; i < kJobs; ++i) queue.add(tx, "t", fmt::format("{}", i), "{}");
  });
  const std::vector<std::string> types{"t"};
  // For each failure: the shortest and the longest pause, which differ by a quarter.
  for (const auto& [shortest, longest] :
       {std::pair(750, 1000), std::pair(1500, 2000), std::pair(3000, 4000), std::pair(3000, 4000)}) {
    const auto accepted =
        in_tx([&](kv::Transaction& tx) { return accept(queue, tx, types, {.limit = kJobs}).jobs; });
    EXPECT_EQ(accepted.size(), kJobs);
    in_tx([&](kv::Transaction& tx) {
      for (const auto& job : accepted) fail(queue, tx, job.attempt(), "no");
    });
    std::set<std::int64_t> pauses;
    const auto failed = in_tx([&](kv::Transaction& tx) {
      return list_jobs(queue, tx, "t", {.state = State::pending, .limit = kJobs}).jobs;
    });
    for (const auto& job : failed) pauses.insert(job.due_at - clock.wall_ms());
    EXPECT_GT(pauses.size(), kJobs / 2);
    EXPECT_GE(*pauses.begin(), shortest);
    EXPECT_LE(*pauses.rbegin(), longest);
    EXPECT_GT(*pauses.rbegin() - *pauses.begin(), (longest - shortest) / 2);
    clock.advance(milliseconds(longest));
  }
}

}  // namespace
}  // namespace divan::jobs
