#include "divan/base/change_tracker.h"

#include <gtest/gtest.h>

namespace divan {
namespace {

TEST(ChangeTracker, MeasuresFromTheLastChange) {
  ChangeTracker<std::string> tracker;
  const auto at = [](int seconds) { return MonotonicTime() + std::chrono::seconds(seconds); };
  EXPECT_EQ(tracker.observe("a", "1", at(0)), std::chrono::seconds(0));
  EXPECT_EQ(tracker.observe("a", "1", at(5)), std::chrono::seconds(5));
  EXPECT_EQ(tracker.observe("b", "1", at(5)), std::chrono::seconds(0));
  EXPECT_EQ(tracker.observe("a", "2", at(7)), std::chrono::seconds(0));
  EXPECT_EQ(tracker.observe("a", "2", at(9)), std::chrono::seconds(2));
  tracker.retain([](const std::string& key) { return key == "b"; });
  EXPECT_EQ(tracker.observe("a", "2", at(10)), std::chrono::seconds(0));
  EXPECT_EQ(tracker.observe("b", "1", at(10)), std::chrono::seconds(5));
}

}  // namespace
}  // namespace divan
