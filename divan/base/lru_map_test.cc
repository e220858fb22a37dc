#include "divan/base/lru_map.h"

#include <gtest/gtest.h>

namespace divan {
namespace {

TEST(LruMap, EvictsTheLeastRecentlyUsed) {
  LruMap<int> map(3);
  map["a"] = 1;
  map["b"] = 2;
  map["c"] = 3;
  EXPECT_EQ(*map.touch("a"), 1);
  EXPECT_EQ(*map.find("b"), 2);  // does not count as a use
  map["c"] = 4;
  map["d"] = 5;
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(map.find("b"), nullptr);
  EXPECT_EQ(map.touch("b"), nullptr);
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_EQ(*map.find("c"), 4);
  EXPECT_EQ(map["e"], 0);
  EXPECT_EQ(map.find("a"), nullptr);
}

TEST(LruMap, CanBeCleared) {
  LruMap<int> map(2);
  map["a"] = 1;
  map.clear();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find("a"), nullptr);
  map["b"] = 2;
  EXPECT_EQ(*map.find("b"), 2);
}

TEST(LruMap, OfOneEntry) {
  LruMap<int> map(1);
  for (int i = 0; i < 100; ++i) map[std::to_string(i)] = i;
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(*map.find("99"), 99);
}

}  // namespace
}  // namespace divan
