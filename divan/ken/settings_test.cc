#include "divan/ken/settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "divan/base/error.h"

namespace divan::ken {
namespace {

using std::chrono::milliseconds;

TEST(KenSettings, DefaultsAreKeptAndReturnedAndBadOnesRefused) {
  Config config;
  struct Case {
    const char* name;
    std::int64_t fallback, good, smallest;
  };
  for (const auto& one :
       {Case{"limit", 20, 12, 1}, Case{"batch_size", 1, 3, 1}, Case{"delay", 5000, 7000, 0},
        Case{"prune_interval", 60'000, 70'000, 1001}, Case{"batch_channels", 20, 5, 1},
        Case{"incremental_channels", 80, 7, 0}, Case{"max_incremental_updates", 1000, 10, 1}}) {
    EXPECT_EQ(change_setting(config, one.name, one.good), one.fallback) << one.name;
    EXPECT_EQ(change_setting(config, one.name, one.smallest), one.good) << one.name;
    for (const std::int64_t bad : {one.smallest - 1, std::int64_t{-12}})
      EXPECT_THROW(change_setting(config, one.name, bad), Error) << one.name;
    EXPECT_EQ(change_setting(config, one.name, one.good), one.smallest) << one.name;
  }
  EXPECT_THROW(change_setting(config, "limits", 1), Error);
}

TEST(KenSettings, AreReadFromAFile) {
  const auto path = std::filesystem::temp_directory_path() / "divan_ken_settings_test.ini";
  std::ofstream(path) << "[ken]\nlimit = 42\ndelay = 70\n[ken.ignore]\nquiet = true\nloud = false\n";
  Config config;
  config.load(path.string());
  std::filesystem::remove(path);
  const Settings settings = read_settings(config);
  EXPECT_EQ(settings.limit, 42);
  EXPECT_EQ(settings.delay, milliseconds(70));
  EXPECT_EQ(settings.batch_channels, 20);
  EXPECT_EQ(settings.prune_interval, milliseconds(60'000));
  EXPECT_TRUE(is_ignored(config, "quiet"));
  EXPECT_FALSE(is_ignored(config, "loud"));
  EXPECT_FALSE(is_ignored(config, "other"));
}

TEST(KenSettings, InvalidOnesAreRefused) {
  Config config;
  config.override_with("ken", "limit", "0");
  EXPECT_THROW(read_settings(config), Error);
}

// The specification, case by case.
TEST(KenRule, ANeverSeenIndex) {
  const Settings settings;
  const auto wait = [&](std::int64_t active, std::int64_t behind) {
    return why_to_wait(settings, active, 0, {.behind = behind});
  };
  EXPECT_EQ(wait(19, 1'000'000), std::nullopt);
  EXPECT_EQ(wait(20, 999), std::nullopt);
  EXPECT_EQ(wait(20, 1000), WaitReason::batch_channels);
  EXPECT_EQ(wait(99, 999), std::nullopt);
  EXPECT_EQ(wait(100, 1), WaitReason::channels);
  EXPECT_EQ(wait(100, 5000), WaitReason::channels);
}

TEST(KenRule, AnIdleKnownIndex) {
  Settings settings;
  settings.batch_size = 10;
  const auto wait = [&](std::int64_t active, std::int64_t behind, std::int64_t moved, int idle_ms) {
    return why_to_wait(settings, active, 0,
                       {.known = true, .behind = behind, .moved = moved, .idle = milliseconds(idle_ms)});
  };
  EXPECT_EQ(wait(19, 10, 10, 0), std::nullopt);        // it moved by batch_size
  EXPECT_EQ(wait(19, 9, 9, 5000), WaitReason::delay);  // neither that, nor is the delay over
  EXPECT_EQ(wait(19, 9, 9, 5001), std::nullopt);       // the delay is over
  EXPECT_EQ(wait(20, 999, 10, 5001), std::nullopt);
  EXPECT_EQ(wait(20, 999, 10, 5000), WaitReason::delay);
  EXPECT_EQ(wait(20, 1000, 10, 5001), WaitReason::batch_channels);
  EXPECT_EQ(wait(100, 1, 10, 5001), WaitReason::channels);
}

TEST(KenRule, AtMostTheLimitOfOneDatabase) {
  const Settings settings;
  EXPECT_EQ(why_to_wait(settings, 19, 19, {.behind = 1}), std::nullopt);
  EXPECT_EQ(why_to_wait(settings, 20, 20, {.behind = 1}), WaitReason::limit);
}

}  // namespace
}  // namespace divan::ken
