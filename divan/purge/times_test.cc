#include "divan/purge/times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::purge {
namespace {

constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kStart = 1'700'000'000'000;

struct TimeSamples : testing::Test {
  kv::embedded::TemporaryStore store;

  kv::Version sample(std::int64_t time_ms) {
    return store->run([&](kv::Transaction& tx) {
      sample_time(tx, time_ms, std::chrono::hours(1));
      return tx.read_version();
    });
  }
  std::optional<kv::Version> before(std::int64_t time_ms) {
    return store->run([&](kv::Transaction& tx) { return version_before(tx, time_ms); });
  }
  std::vector<std::int64_t> times() {
    std::vector<std::int64_t> found;
    store->dump([&](std::string_view key, std::string_view value) {
      if (const auto one = read_time_sample(key, value)) found.push_back(one->time_ms);
      return true;
    });
    return found;
  }
};

TEST_F(TimeSamples, TellWhichVersionsAreOlder) {
  EXPECT_EQ(before(kStart), std::nullopt);
  const auto first = sample(kStart);
  const auto second = sample(kStart + kHour);
  EXPECT_LT(first, second);
  EXPECT_EQ(before(kStart), std::nullopt);
  EXPECT_EQ(before(kStart + 1), first);
  EXPECT_EQ(before(kStart + kHour), first);
  EXPECT_EQ(before(kStart + kHour + 1), second);
  EXPECT_EQ(before(-5), std::nullopt);
}

TEST_F(TimeSamples, AreNotMoreFrequentThanTheInterval) {
  sample(kStart);
  sample(kStart + kHour - 1);
  sample(kStart + kHour);
  EXPECT_THAT(times(), testing::ElementsAre(kStart, kStart + kHour));
}

TEST_F(TimeSamples, AreSparserTheOlderTheyAre) {
  constexpr int kHours = 2'000;
  for (int i = 0; i < kHours; ++i) sample(kStart + i * kHour);
  const auto all = times();
  EXPECT_LT(all.size(), 400u);
  EXPECT_EQ(all.front(), kStart);
  const std::int64_t now = kStart + (kHours - 1) * kHour;
  EXPECT_EQ(all.back(), now);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::int64_t allowed = std::max(kHour, (now - all[i - 1]) / 32);
    EXPECT_LE(all[i] - all[i - 1], allowed) << i;
  }
}

TEST_F(TimeSamples, OfTheFutureAreRemoved) {
  sample(kStart);
  sample(kStart + 1000 * kHour);
  sample(kStart + 2 * kHour);
  EXPECT_THAT(times(), testing::ElementsAre(kStart, kStart + 2 * kHour));
}

TEST_F(TimeSamples, DamagedOnesAreErrors) {
  std::string key;
  kv::tuple::Packer(key).string("times").integer(1);
  EXPECT_THROW(read_time_sample(key, "x"), std::exception);
  EXPECT_EQ(read_time_sample("x", "x"), std::nullopt);
}

}  // namespace
}  // namespace divan::purge
