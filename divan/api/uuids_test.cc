#include "divan/api/uuids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "divan/base/clock.h"

namespace divan::api {
namespace {

using ::testing::MatchesRegex;

std::unique_ptr<Uuids> uuids_of(Rng& rng, const Clock& clock, const std::string& algorithm) {
  Config config;
  config.override_with("uuids", "algorithm", algorithm);
  config.override_with("uuids", "utc_id_suffix", "-node");
  auto uuids = std::make_unique<Uuids>(rng, clock);
  uuids->configure(config);
  return uuids;
}

TEST(UuidsTest, EachAlgorithmHasItsForm) {
  SeededRng rng(1);
  SystemClock clock;
  const std::pair<const char*, const char*> forms[] = {
      {"uuid_v7", "[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}"},
      {"uuid_v4", "[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}"},
      {"random", "[0-9a-f]{32}"},
      {"sequential", "[0-9a-f]{32}"},
      {"utc_random", "[0-9a-f]{32}"},
      {"utc_id", "[0-9a-f]{14}-node"},
  };
  ASSERT_EQ(std::size(forms), std::size(kUuidAlgorithms));
  for (const auto& [algorithm, form] : forms) {
    const auto uuids = uuids_of(rng, clock, algorithm);
    for (int i = 0; i < 100; ++i) EXPECT_THAT(uuids->next(), MatchesRegex(form)) << algorithm;
  }
}

TEST(UuidsTest, IdsOfSeveralThreadsDiffer) {
  SystemRng rng;
  SystemClock clock;
  for (const char* algorithm : kUuidAlgorithms) {
    const auto uuids = uuids_of(rng, clock, algorithm);
    std::vector<std::vector<std::string>> ids(4);
    std::vector<std::thread> threads;
    for (auto& own : ids) {
      threads.emplace_back([&own, &uuids] {
        for (int i = 0; i < 2'000; ++i) own.push_back(uuids->next());
      });
    }
    for (auto& thread : threads) thread.join();
    std::set<std::string> all;
    for (const auto& own : ids) all.insert(own.begin(), own.end());
    EXPECT_EQ(all.size(), 8'000u) << algorithm;
  }
}

TEST(UuidsTest, SequentialIdsAndThoseWithTimesGrowWhileTheClockStandsStill) {
  SystemRng rng;
  const ManualClock clock;
  for (const char* algorithm : {"sequential", "utc_id"}) {
    const auto uuids = uuids_of(rng, clock, algorithm);
    std::string before = uuids->next();
    for (int i = 0; i < 100; ++i) {
      std::string id = uuids->next();
      EXPECT_LT(before, id) << algorithm;
      before = std::move(id);
    }
  }
}

}  // namespace
}  // namespace divan::api
