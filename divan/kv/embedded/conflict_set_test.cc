#include "divan/kv/embedded/conflict_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace divan::kv::embedded {
namespace {

TEST(ConflictSet, APointConflictsWithReadsOfItAndOfRangesOverIt) {
  ConflictSet set;
  set.add_point("b", 5);
  EXPECT_TRUE(set.changed_since("b", "", 4));
  EXPECT_FALSE(set.changed_since("b", "", 5));
  EXPECT_FALSE(set.changed_since("a", "", 4));
  EXPECT_TRUE(set.changed_since("a", "c", 4));
  EXPECT_FALSE(set.changed_since("a", "b", 4));
  EXPECT_TRUE(set.changed_since("b", "b0", 4));
  EXPECT_FALSE(set.changed_since("b0", "c", 4));
}

TEST(ConflictSet, ARangeKeepsTheVersionsBesideIt) {
  ConflictSet set;
  set.add_range("b", "m", 5);
  set.add_range("d", "f", 7);
  EXPECT_TRUE(set.changed_since("c", "", 4));
  EXPECT_FALSE(set.changed_since("c", "", 5));
  EXPECT_TRUE(set.changed_since("d", "", 6));
  EXPECT_FALSE(set.changed_since("f", "", 5));
  EXPECT_TRUE(set.changed_since("f", "", 4));
  EXPECT_FALSE(set.changed_since("m", "", 0));
  EXPECT_TRUE(set.changed_since("a", "e", 6));
}

TEST(ConflictSet, ForgetsWhatIsTooOldToMatter) {
  ConflictSet set;
  for (int i = 0; i < 10'000; ++i) set.add_point("k" + std::to_string(i), 1 + i / 100);
  for (int i = 0; i < 100; ++i) set.add_range("r" + std::to_string(i), "r" + std::to_string(i) + "~", 50);
  for (int i = 0; i < 400; ++i) set.forget_before(100);
  EXPECT_EQ(set.size(), 100u);
  EXPECT_TRUE(set.changed_since("k9999", "", 99));
}

TEST(ConflictSet, IncrementalSweepsBoundDeadEntries) {
  ConflictSet set;
  for (int i = 0; i < 100'000; ++i) {
    if (i >= 1000 && i % 1000 == 0) set.forget_before(i - 1000);
    set.add_point(std::to_string(i), i);
  }
  EXPECT_LT(set.size(), 5'000u);
}

TEST(ConflictSet, RangesAreSweptWhenTheyHaveGrown) {
  ConflictSet set;
  for (int i = 0; i < 100'000; ++i) {
    set.forget_before(std::max(i - 1000, 0));
    const std::string begin = std::to_string(i * 7919 % 100'003);
    set.add_range(begin, begin + "~", i);
  }
  // A thousand live ranges have two entries each.
  EXPECT_LT(set.size(), 10'000u);
  EXPECT_TRUE(set.changed_since(std::to_string(99'999 * 7919 % 100'003), "", 99'998));
}

// Against the obvious model: the version of every key of a small universe.
RC_GTEST_PROP(ConflictSet, AgreesWithAMapOfAllKeys, ()) {
  ConflictSet set;
  std::array<Version, 26> versions{};
  const auto key = [](int i) { return std::string(1, static_cast<char>('a' + i)); };
  const auto letter = rc::gen::inRange(0, 26);
  Version now = 0;
  Version oldest = 0;
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    ++now;
    int a = *letter, b = *letter;
    if (a > b) std::swap(a, b);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        set.add_point(key(a), now);
        versions[a] = now;
        break;
      case 1:
        set.add_range(key(a), key(b), now);
        for (int i = a; i < b; ++i) versions[i] = now;
        break;
      case 2:
        oldest = std::max(oldest, now - 5);
        set.forget_before(oldest);
        break;
      default: {
        const Version since = *rc::gen::inRange<Version>(oldest, now + 1);
        RC_ASSERT(set.changed_since(key(a), "", since) == (versions[a] > since));
        const bool any =
            std::any_of(versions.begin() + a, versions.begin() + b, [&](Version v) { return v > since; });
        if (a < b) RC_ASSERT(set.changed_since(key(a), key(b), since) == any);
      }
    }
  }
}

}  // namespace
}  // namespace divan::kv::embedded
