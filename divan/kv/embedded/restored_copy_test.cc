// Versions of a store whose directory is replaced by an older copy are not used again.
#include <gtest/gtest.h>

#include <filesystem>

#include "divan/kv/clock_version.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::kv::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct RestoredCopy : testing::Test {
  TemporaryDirectory directory;
  SystemRng rng;
  const std::string path = directory.path() + "/store";
  const std::string copy = directory.path() + "/copy";

  // Opens the store, commits `times` times, and returns the last version.
  Version commit(const Clock& clock, int times) {
    EmbeddedDatabase db({.directory = path, .durable = false}, clock, rng);
    Version version = -1;
    for (int i = 0; i < times; ++i) {
      const auto tx = db.begin();
      tx->set("k", std::to_string(i));
      tx->commit();
      version = tx->committed_version();
    }
    return version;
  }
  Version read_version(const Clock& clock) {
    return EmbeddedDatabase({.directory = path, .durable = false}, clock, rng).begin()->read_version();
  }
  void make_copy() { fs::copy(path, copy, fs::copy_options::recursive); }
  void restore_copy() {
    fs::remove_all(path);
    fs::copy(copy, path, fs::copy_options::recursive);
  }
};

TEST_F(RestoredCopy, VersionsExceedThoseThatWereLost) {
  ManualClock clock;
  commit(clock, 10);
  make_copy();
  clock.advance(minutes(1));
  const Version lost = commit(clock, 1000);
  clock.advance(seconds(1));
  restore_copy();
  const Version after = commit(clock, 1);
  EXPECT_GT(after, lost);
  // The same copy is restored again.
  clock.advance(seconds(1));
  restore_copy();
  EXPECT_GT(read_version(clock), after);
}

TEST_F(RestoredCopy, VersionsGrowWhenTheClockWasSetBack) {
  const ManualClock right(1'700'000'000'000), behind(1'600'000'000'000);
  const Version before = commit(right, 10);
  EXPECT_EQ(read_version(behind), before);
  EXPECT_EQ(commit(behind, 1), before + 1);
}

TEST_F(RestoredCopy, VersionsFollowTheClockOnlyWhenAStoreIsOpened) {
  ManualClock clock;
  EmbeddedDatabase db({.directory = path, .durable = false}, clock, rng);
  const Version first = db.begin()->read_version();
  EXPECT_EQ(first, clock.wall_ms() * 1000);
  clock.advance(hours(1));
  const auto tx = db.begin();
  tx->set("a", "1");
  tx->commit();
  EXPECT_EQ(tx->committed_version(), first + 1);
}

TEST_F(RestoredCopy, AnImplausibleClockIsIgnored) {
  EXPECT_EQ(version_of_clock(-1), 0);
  EXPECT_EQ(version_of_clock(INT64_MIN), 0);
  EXPECT_EQ(version_of_clock(INT64_MAX), 0);
  EXPECT_EQ(version_of_clock(kMaxClockVersion / 1000), kMaxClockVersion / 1000 * 1000);
  EXPECT_EQ(version_of_clock(kMaxClockVersion / 1000 + 1), 0);
  const ManualClock far(10'000'000'000'000);  // in 2286
  EXPECT_EQ(commit(far, 3), 3);
}

}  // namespace
}  // namespace divan::kv::embedded
