#include "divan/js/process_scheduler.h"

#include <gtest/gtest.h>

namespace divan::js {
namespace {

// Starts a call that gets a process at once.
ProcessScheduler::Call begun(ProcessScheduler& scheduler, std::int64_t database, Purpose purpose) {
  const auto call = scheduler.enqueue(database, purpose);
  EXPECT_TRUE(scheduler.is_next(call));
  scheduler.dequeue(call);
  scheduler.begin(call);
  return call;
}

TEST(JsProcessScheduler, EachPurposeLeavesProcessesToMoreUrgentOnes) {
  ProcessScheduler scheduler(2, 1);
  for (int database : {1, 2}) begun(scheduler, database, Purpose::background);
  const auto background = scheduler.enqueue(3, Purpose::background);
  EXPECT_FALSE(scheduler.is_next(background));
  const auto trial = begun(scheduler, 1, Purpose::trial);
  const auto second_trial = scheduler.enqueue(4, Purpose::trial);
  EXPECT_FALSE(scheduler.is_next(second_trial));
  const auto urgent = begun(scheduler, 1, Purpose::urgent);
  const auto second_urgent = scheduler.enqueue(4, Purpose::urgent);
  EXPECT_FALSE(scheduler.is_next(second_urgent));
  begun(scheduler, 5, Purpose::check);
  const auto second_check = scheduler.enqueue(6, Purpose::check);
  EXPECT_FALSE(scheduler.is_next(second_check));
  scheduler.dequeue(second_check);
  scheduler.end(urgent);
  EXPECT_FALSE(scheduler.is_next(background));
  EXPECT_FALSE(scheduler.is_next(second_trial));
  EXPECT_TRUE(scheduler.is_next(second_urgent));
  scheduler.dequeue(second_urgent);
  scheduler.end(trial);
  EXPECT_FALSE(scheduler.is_next(background));
  EXPECT_TRUE(scheduler.is_next(second_trial));
}

TEST(JsProcessScheduler, UrgentCallsAreLimited) {
  ProcessScheduler scheduler(1, 1);
  for (int i = 0; i < 3; ++i) begun(scheduler, i, Purpose::urgent);
  for (const auto purpose : {Purpose::background, Purpose::trial, Purpose::urgent})
    EXPECT_FALSE(scheduler.is_next(scheduler.enqueue(3, purpose)));
}

TEST(JsProcessScheduler, TheDatabaseWithTheFewestProcessesIsNext) {
  ProcessScheduler scheduler(3, 0);
  for (int i = 0; i < 2; ++i) scheduler.begin(scheduler.enqueue(1, Purpose::background));
  scheduler.dequeue({0});
  scheduler.dequeue({1});
  const auto first = scheduler.enqueue(1, Purpose::background);
  EXPECT_TRUE(scheduler.is_next(first));
  const auto other = scheduler.enqueue(2, Purpose::background);
  EXPECT_FALSE(scheduler.is_next(first));
  EXPECT_TRUE(scheduler.is_next(other));
}

TEST(JsProcessScheduler, ListsHaveAdditionalProcesses) {
  ProcessScheduler scheduler(1, 0);
  const auto list = begun(scheduler, 1, Purpose::list);
  const auto background = begun(scheduler, 1, Purpose::background);
  const auto second_background = scheduler.enqueue(2, Purpose::background);
  EXPECT_FALSE(scheduler.is_next(second_background));
  scheduler.dequeue(second_background);
  const auto second_list = begun(scheduler, 2, Purpose::list);
  // When a list ends, its process exceeds those that are kept; the processes of the others do not.
  EXPECT_EQ(scheduler.kept(), 1u);
  EXPECT_EQ(scheduler.kept_after(background), 3u);
  EXPECT_EQ(scheduler.kept_after(list), 2u);
  scheduler.end(list);
  EXPECT_EQ(scheduler.kept_after(second_list), 1u);
}

}  // namespace
}  // namespace divan::js
