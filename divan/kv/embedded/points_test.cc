#include "divan/kv/embedded/points.h"

#include <gtest/gtest.h>

#include <map>

#include "divan/base/rng.h"

namespace divan::kv::embedded {
namespace {

// The obvious way.
struct PointMap {
  std::map<std::string, Version> points;

  bool changed_since(const std::string& begin, const std::string& end, Version version) const {
    for (auto it = points.lower_bound(begin); it != points.end() && it->first < end; ++it) {
      if (it->second > version) return true;
    }
    return false;
  }
};

// Keys at random or growing, over thousands of keys, so that blocks are split and merged all the time.
void compare_with_map(std::uint64_t seed, bool growing) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr std::size_t kKeys = 5'000;
  SeededRng rng(seed);
  Points points;
  PointMap model;
  std::size_t bytes = 0, swept = 0;
  Version now = 0;
  std::size_t next = 0;
  const auto random_key = [&] { return std::to_string(rng.below(kKeys)); };
  for (int step = 0; step < 20'000; ++step) {
    if (rng.below(4) == 0) ++now;
    const std::string key = growing ? "k" + std::to_string(1'000'000 + next++ % kKeys) : random_key();
    model.points[key] = now;
    if (points.set(key, now)) bytes += key.size();
    const Version oldest = now - 200;
    if (rng.below(20) == 0) {
      swept += points.sweep(rng.below(500), oldest);
      ASSERT_LE(points.size(), model.points.size());
    }
    const Version since = oldest + static_cast<Version>(rng.below(202));
    const std::string one = growing ? key : random_key();
    const auto known = model.points.find(one);
    ASSERT_EQ(points.changed_since(one, since), known != model.points.end() && known->second > since);
    auto begin = random_key(), end = random_key();
    if (growing) begin = "k" + std::to_string(1'000'000 + rng.below(kKeys)), end = begin + "~";
    if (begin > end) std::swap(begin, end);
    ASSERT_EQ(points.changed_since(begin, end, since), model.changed_since(begin, end, since));
    ASSERT_EQ(points.changed_since("", "~", since), model.changed_since("", "~", since));
  }
  // What is left after a whole round is what is not too old.
  const Version oldest = now - 100;
  points.sweep_from_the_beginning();
  swept += points.sweep(SIZE_MAX, oldest);
  std::erase_if(model.points, [&](const auto& point) { return point.second < oldest; });
  EXPECT_EQ(points.size(), model.points.size());
  for (const auto& [key, version] : model.points) {
    EXPECT_TRUE(points.changed_since(key, version - 1));
    EXPECT_FALSE(points.changed_since(key, version));
  }
  swept += points.sweep(SIZE_MAX, now + 1);
  EXPECT_EQ(points.size(), 0u);
  EXPECT_EQ(swept, bytes);
}

TEST(Points, AgreeWithAMap) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) compare_with_map(seed, false);
}

TEST(Points, AgreeWithAMapWhereKeysGrow) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) compare_with_map(seed, true);
}

TEST(Points, BytesOfKeysComeBackFromTheSweep) {
  Points points;
  for (int i = 0; i < 1000; ++i) points.set(std::to_string(10'000 + i), i);
  EXPECT_EQ(points.sweep(SIZE_MAX, 500), 500u * 5);
  EXPECT_EQ(points.size(), 500u);
  EXPECT_EQ(points.sweep(SIZE_MAX, 1000), 500u * 5);
  EXPECT_EQ(points.sweep(SIZE_MAX, 1000), 0u);
  EXPECT_TRUE(points.set("again", 7));
}

TEST(Points, SweepsGoInACircle) {
  Points points;
  for (int i = 0; i < 10'000; ++i) points.set(std::to_string(10'000 + i), 1);
  for (int i = 0; i < 200 && points.size() > 0; ++i) points.sweep(Points::kBlockPoints, 2);
  EXPECT_EQ(points.size(), 0u);
}

TEST(Points, SweepsGoOnBehindWhatIsNotTooOld) {
  Points points;
  for (int i = 0; i < 1000; ++i) points.set(std::to_string(10'000 + i), 2);
  for (int i = 0; i < 1000; ++i) points.set(std::to_string(20'000 + i), 1);
  for (int i = 0; i < 200; ++i) points.sweep(Points::kBlockPoints, 2);
  EXPECT_EQ(points.size(), 1000u);
}

}  // namespace
}  // namespace divan::kv::embedded
