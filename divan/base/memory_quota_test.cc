#include "divan/base/memory_quota.h"

#include <gtest/gtest.h>

#include <string>

namespace divan {
namespace {

using Quota = MemoryQuota<std::string>;

TEST(MemoryQuota, LimitsOfOneAndOfAll) {
  Quota quota({.all = 100, .of_one = 60, .share = 10}, MutexRank::requests);
  Quota::Reservation a(quota, "a"), more(quota, "a"), b(quota, "b"), c(quota, "c");
  EXPECT_EQ(a.add(40), MemoryLimit::none);
  EXPECT_EQ(more.add(21), MemoryLimit::of_one);
  EXPECT_EQ(more.add(20), MemoryLimit::none);
  EXPECT_EQ(b.add(30), MemoryLimit::none);
  EXPECT_EQ(b.add(11), MemoryLimit::all);
  // Whoever holds none gets what is asked for, and up to the share.
  EXPECT_EQ(c.add(5), MemoryLimit::none);
  EXPECT_EQ(c.add(5), MemoryLimit::none);
  EXPECT_EQ(c.add(1), MemoryLimit::all);
  Quota::Reservation d(quota, "d");
  EXPECT_EQ(d.add(1000), MemoryLimit::none);
  EXPECT_EQ(d.add(0), MemoryLimit::none);
  EXPECT_EQ(d.add(1), MemoryLimit::of_one);
  a = {};
  d = {};
  EXPECT_EQ(b.add(11), MemoryLimit::none);
  EXPECT_EQ(more.add(29), MemoryLimit::none);
  EXPECT_EQ(more.add(1), MemoryLimit::all);
}

TEST(MemoryQuota, AReservationCanBeMoved) {
  Quota quota({.all = 10, .of_one = 10, .share = 0}, MutexRank::requests);
  {
    Quota::Reservation first(quota, "a");
    EXPECT_EQ(first.add(10), MemoryLimit::none);
    const Quota::Reservation second = std::move(first);
    Quota::Reservation third(quota, "a");
    EXPECT_EQ(third.add(1), MemoryLimit::of_one);
  }
  Quota::Reservation again(quota, "a");
  EXPECT_EQ(again.add(5), MemoryLimit::none);
  EXPECT_EQ(again.add(5), MemoryLimit::none);
  EXPECT_EQ(again.add(1), MemoryLimit::of_one);
}

}  // namespace
}  // namespace divan
