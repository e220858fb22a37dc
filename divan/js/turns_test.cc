#include "divan/js/turns.h"

#include <gtest/gtest.h>

namespace divan::js {
namespace {

TEST(JsTurns, BackgroundCallsLeaveTheReservedProcessToUrgentOnes) {
  Turns turns(2, 1);
  for (int database : {1, 2}) {
    const auto call = turns.join(database, Purpose::background);
    EXPECT_TRUE(turns.is_next(call));
    turns.begin(call);
    turns.leave(call);
  }
  const auto third = turns.join(3, Purpose::background);
  EXPECT_FALSE(turns.is_next(third));
  const auto urgent = turns.join(1, Purpose::urgent);
  EXPECT_TRUE(turns.is_next(urgent));
  turns.leave(urgent);
  turns.begin(urgent);
  const auto another = turns.join(4, Purpose::urgent);
  EXPECT_FALSE(turns.is_next(another));
  const auto check = turns.join(5, Purpose::check);
  EXPECT_TRUE(turns.is_next(check));
  turns.leave(check);
  turns.begin(check);
  const auto second_check = turns.join(6, Purpose::check);
  EXPECT_FALSE(turns.is_next(second_check));
  turns.leave(second_check);
  turns.end(urgent);
  EXPECT_FALSE(turns.is_next(third));
  EXPECT_TRUE(turns.is_next(another));
}

TEST(JsTurns, UrgentCallsTakeNoMoreThanThereIs) {
  Turns turns(1, 1);
  for (int i = 0; i < 2; ++i) {
    const auto call = turns.join(i, Purpose::urgent);
    EXPECT_TRUE(turns.is_next(call));
    turns.leave(call);
    turns.begin(call);
  }
  EXPECT_FALSE(turns.is_next(turns.join(2, Purpose::urgent)));
  EXPECT_FALSE(turns.is_next(turns.join(3, Purpose::background)));
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
