#include "divan/js/turns.h"

#include <gtest/gtest.h>

namespace divan::js {
namespace {

// As a call that gets a process at once.
Turns::Call begun(Turns& turns, std::int64_t database, Purpose purpose) {
  const auto call = turns.join(database, purpose);
  EXPECT_TRUE(turns.is_next(call));
  turns.leave(call);
  turns.begin(call);
  return call;
}

TEST(JsTurns, EachPurposeLeavesProcessesToThoseThatAreMoreUrgent) {
  Turns turns(2, 1);
  for (int database : {1, 2}) begun(turns, database, Purpose::background);
  const auto background = turns.join(3, Purpose::background);
  EXPECT_FALSE(turns.is_next(background));
  const auto trial = begun(turns, 1, Purpose::trial);
  const auto second_trial = turns.join(4, Purpose::trial);
  EXPECT_FALSE(turns.is_next(second_trial));
  const auto urgent = begun(turns, 1, Purpose::urgent);
  const auto second_urgent = turns.join(4, Purpose::urgent);
  EXPECT_FALSE(turns.is_next(second_urgent));
  begun(turns, 5, Purpose::check);
  const auto second_check = turns.join(6, Purpose::check);
  EXPECT_FALSE(turns.is_next(second_check));
  turns.leave(second_check);
  turns.end(urgent);
  EXPECT_FALSE(turns.is_next(background));
  EXPECT_FALSE(turns.is_next(second_trial));
  EXPECT_TRUE(turns.is_next(second_urgent));
  turns.leave(second_urgent);
  turns.end(trial);
  EXPECT_FALSE(turns.is_next(background));
  EXPECT_TRUE(turns.is_next(second_trial));
}

TEST(JsTurns, UrgentCallsTakeNoMoreThanThereIs) {
  Turns turns(1, 1);
  for (int i = 0; i < 3; ++i) begun(turns, i, Purpose::urgent);
  for (const auto purpose : {Purpose::background, Purpose::trial, Purpose::urgent})
    EXPECT_FALSE(turns.is_next(turns.join(3, purpose)));
}

TEST(JsTurns, TheDatabaseWithTheFewestProcessesIsNext) {
  Turns turns(3, 0);
  for (int i = 0; i < 2; ++i) turns.begin(turns.join(1, Purpose::background));
  turns.leave({0});
  turns.leave({1});
  const auto first = turns.join(1, Purpose::background);
  EXPECT_TRUE(turns.is_next(first));
  const auto other = turns.join(2, Purpose::background);
  EXPECT_FALSE(turns.is_next(first));
  EXPECT_TRUE(turns.is_next(other));
}

}  // namespace
}  // namespace divan::js
