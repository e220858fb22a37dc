#include "divan/index/slots.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "divan/index/builds.h"

namespace divan::index {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct SlotsTest : ::testing::Test {
  ManualClock clock;
  Slots slots{2, clock};

  static std::string job(std::string_view database, int number = 0) {
    return fmt::format("{:02}:1:{}", number, database);
  }
  static jobs::DueJob due(std::string id, std::int64_t priority) {
    return {.priority = priority, .id = std::move(id)};
  }
  std::optional<Slots::Id> begin(std::string_view database, std::int64_t priority, int number = 0) {
    return slots.begin({.type = "views",
                        .job = job(database, number),
                        .database = std::string(database),
                        .priority = priority});
  }
  std::vector<std::string> ordered(std::vector<jobs::DueJob> some) {
    slots.order(some);
    std::vector<std::string> ids;
    for (auto& one : some) ids.push_back(one.id);
    return ids;
  }
};

TEST_F(SlotsTest, LargeBuildsLeaveTheLastThreadToSmallOnes) {
  EXPECT_TRUE(begin("a", kBuildPriority));
  const auto second = begin("b", kBuildPriority);
  EXPECT_TRUE(second);
  EXPECT_FALSE(begin("c", kBuildPriority));
  EXPECT_THAT(ordered({due(job("c"), kQueryPriority), due(job("d"), kCatchUpPriority),
                       due(job("e"), kBuildPriority)}),
              ElementsAre(job("c"), job("d")));
  EXPECT_TRUE(slots.reset_skipped());
  EXPECT_FALSE(slots.reset_skipped());
  EXPECT_TRUE(begin("c", kQueryPriority));
  slots.end(*second);
  EXPECT_THAT(ordered({due(job("e"), kBuildPriority)}), ElementsAre(job("e")));
}

TEST_F(SlotsTest, TheLastThreadIsForQueries) {
  std::optional<Slots::Id> one;
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(one = begin(name, kCatchUpPriority));
  EXPECT_EQ(slots.threads(), 4u);
  for (const auto priority : {kCatchUpPriority, kOverduePriority, kBuildPriority}) {
    EXPECT_FALSE(begin("d", priority));
    EXPECT_TRUE(slots.reset_skipped());
    EXPECT_THAT(ordered({due(job("d"), priority), due(job("e"), kQueryPriority)}), ElementsAre(job("e")));
    EXPECT_TRUE(slots.reset_skipped());
    EXPECT_THAT(ordered({due(job("e"), kQueryPriority)}), ElementsAre(job("e")));
    EXPECT_FALSE(slots.reset_skipped());
  }
  const auto query = begin("d", kQueryPriority);
  EXPECT_TRUE(query);
  // If it is not small, it must leave that thread, too.
  EXPECT_FALSE(slots.enlarge(*query));
  slots.end(*query);
  slots.end(*one);
  EXPECT_TRUE(begin("e", kCatchUpPriority));
}

TEST_F(SlotsTest, OneDatabaseNeverHasAllLargeSlots) {
  EXPECT_TRUE(begin("a", kBuildPriority, 1));
  EXPECT_FALSE(begin("a", kBuildPriority, 2));
  EXPECT_THAT(ordered({due(job("a", 2), kBuildPriority), due(job("b"), kBuildPriority)}),
              ElementsAre(job("b")));
}

TEST_F(SlotsTest, TheDatabaseWithTheFewestBuildsIsNextAmongTheSameUrgency) {
  begin("a", kCatchUpPriority, 1);
  EXPECT_THAT(ordered({due(job("a", 2), kQueryPriority), due(job("a", 3), kCatchUpPriority),
                       due(job("b"), kCatchUpPriority), due(job("c"), kBuildPriority)}),
              ElementsAre(job("a", 2), job("b"), job("a", 3), job("c")));
}

TEST_F(SlotsTest, ABuildThatIsNotSmallGetsASlotOrIsReleased) {
  const auto small = begin("a", kCatchUpPriority);
  EXPECT_TRUE(slots.is_small(*small));
  EXPECT_TRUE(slots.enlarge(*small));
  EXPECT_FALSE(slots.is_small(*small));
  EXPECT_TRUE(slots.enlarge(*small));
  begin("b", kBuildPriority);
  const auto other = begin("c", kCatchUpPriority);
  EXPECT_FALSE(slots.enlarge(*other));
  slots.end(*other);
  // It is large now, whatever its priority.
  EXPECT_THAT(ordered({due(job("c"), kQueryPriority)}), IsEmpty());
  EXPECT_FALSE(begin("c", kQueryPriority));
  slots.end(*small);
  EXPECT_THAT(ordered({due(job("d"), kBuildPriority), due(job("c"), kQueryPriority)}),
              ElementsAre(job("c"), job("d")));
  // The cache entry expires.
  begin("e", kBuildPriority);
  clock.advance(std::chrono::minutes(11));
  EXPECT_THAT(ordered({due(job("c"), kQueryPriority)}), ElementsAre(job("c")));
}

TEST_F(SlotsTest, AnOverdueLargeBuildIsAsUrgentAsSmallOnesAndStillLarge) {
  EXPECT_THAT(ordered({due(job("a"), kOverduePriority), due(job("b"), kCatchUpPriority),
                       due(job("c"), kQueryPriority)}),
              ElementsAre(job("c"), job("a"), job("b")));
  begin("x", kBuildPriority);
  begin("y", kBuildPriority);
  EXPECT_FALSE(begin("a", kOverduePriority));
}

TEST_F(SlotsTest, ABuildYieldsOnlyToJobsThatCanUseItsThread) {
  const auto large = begin("a", kBuildPriority, 1);
  begin("b", kBuildPriority);
  const std::vector<jobs::DueJob> small{due(job("c"), kCatchUpPriority)};
  const std::vector<jobs::DueJob> same{due(job("c"), kBuildPriority)};
  EXPECT_TRUE(slots.yields_to(*large, small, false, false));
  EXPECT_FALSE(slots.yields_to(*large, small, true, false));
  EXPECT_FALSE(slots.yields_to(*large, same, true, false));
  EXPECT_TRUE(slots.yields_to(*large, same, true, true));
  EXPECT_FALSE(slots.yields_to(*large, {}, false, true));
}

}  // namespace
}  // namespace divan::index
