#include "divan/base/recent_keys.h"

#include <gtest/gtest.h>

namespace divan {
namespace {

TEST(RecentKeys, ExpireWithTimeAndWhenThereAreTooMany) {
  RecentKeys keys(std::chrono::seconds(10), 2);
  const auto at = [](int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); };
  keys.add("b", at(0));
  EXPECT_TRUE(keys.contains("b", at(9)));
  EXPECT_FALSE(keys.contains("b", at(10)));
  EXPECT_FALSE(keys.contains("a", at(0)));
  keys.add("a", at(5));
  keys.add("b", at(6));  // again
  EXPECT_TRUE(keys.contains("b", at(15)));
  keys.add("c", at(7));  // replaces the oldest
  EXPECT_FALSE(keys.contains("a", at(7)));
  EXPECT_TRUE(keys.contains("b", at(7)));
  EXPECT_TRUE(keys.contains("c", at(7)));
  keys.add("d", at(16));  // "b" has expired
  EXPECT_TRUE(keys.contains("c", at(16)));
  keys.erase("c");
  EXPECT_FALSE(keys.contains("c", at(16)));
}

}  // namespace
}  // namespace divan
