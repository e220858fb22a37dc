#include "divan/backup/backup.h"

#include <gtest/gtest.h>

#include "divan/base/error.h"
#include "divan/kv/clock_version.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/remote_testing.h"

namespace divan::backup {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr std::int64_t kNow = 1'700'000'000'000;
constexpr std::int64_t kHour = 3'600'000;
constexpr kv::Version kHourVersions = 3'600'000'000;

Header header(std::int64_t created_ms, bool shared = false) { return {"1", "uuid", created_ms, shared}; }

TEST(VersionAfterRestore, IsThatOfTheClock) {
  EXPECT_EQ(version_after_restore(header(kNow - kHour), 164, kNow), kNow * 1000);
}

TEST(VersionAfterRestore, IsBeyondAStoreThatIsAheadOfTheClock) {
  const kv::Version ahead = kNow * 1000 + 5;
  EXPECT_EQ(version_after_restore(header(kNow - kHour), ahead, kNow), ahead + kHourVersions);
  EXPECT_EQ(version_after_restore(header(kNow), ahead, kNow), ahead);
}

TEST(VersionAfterRestore, DoesNotGoBackWithAClockThatIsBehindTheBackup) {
  EXPECT_EQ(version_after_restore(header(kNow), 164, 0), kNow * 1000);
  EXPECT_EQ(version_after_restore(header(kNow), 164, kNow - kHour), kNow * 1000);
  EXPECT_EQ(version_after_restore(header(kNow), kNow * 1000 + 7, kNow - kHour), kNow * 1000 + 7);
}

TEST(VersionAfterRestore, OfAClusterDoesNotDependOnTheDate) {
  EXPECT_EQ(version_after_restore(header(kNow - kHour, true), 1000, kNow), 1000 + 3 * kHourVersions);
  EXPECT_EQ(version_after_restore(header(kNow + kHour, true), 1000, kNow), 1000 + kHourVersions);
}

TEST(VersionAfterRestore, IsAVersionThatAStoreCanContinueFrom) {
  EXPECT_EQ(version_after_restore(header(kNow), kMaxRaisedVersion, kNow), kMaxRaisedVersion);
  try {
    version_after_restore(header(kNow), kMaxRaisedVersion + 1, kNow);
    FAIL();
  } catch (const Error& error) { EXPECT_EQ(error.status(), 400); }
  for (const std::int64_t time : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(version_after_restore(header(time), 164, time), 164);
    EXPECT_GE(version_after_restore(header(time), 164, kNow), 164);
  }
}

// A store, its backup by write_backup(), and stores that were restored from that.
struct Backup : testing::Test {
  ManualClock clock;
  Header read;
  std::string bytes;

  void back_up(kv::Database& store) {
    write_backup(store, header(clock.wall_ms()), [&](std::string_view more) { return bytes += more, true; });
  }
  void restore(kv::Database& store) {
    RowLoader loader(store);
    Parser parser([&](std::string_view key, std::string_view value) { loader.add(key, value); },
                  [&](const Header& found) { read = found; });
    parser.feed(bytes);
    loader.finish(version_after_restore(read, parser.end().version, clock.wall_ms()));
  }
  static kv::Version commit(kv::Database& store, int times = 1) {
    kv::Version version = -1;
    for (int i = 0; i < times; ++i) {
      const auto tx = store.begin();
      tx->set("k", std::to_string(i));
      tx->commit();
      version = tx->committed_version();
    }
    return version;
  }
};

TEST_F(Backup, RestoredVersionsAreBeyondThoseOfTheLostTime) {
  kv::embedded::TemporaryStore store(&clock);
  commit(*store);
  back_up(*store);
  clock.advance(minutes(1));
  store.reopen();
  kv::Version lost = commit(*store, 200);
  // Restores the same backup repeatedly: versions used after an earlier restore must not be repeated either.
  for (int times = 0; times < 3; ++times) {
    clock.advance(minutes(1));
    kv::embedded::TemporaryStore restored(&clock);
    restore(*restored);
    const kv::Version next = commit(*restored, 200);
    EXPECT_GT(next - 199, lost);
    lost = next;
  }
}

TEST_F(Backup, RecordsWhetherItsStoreIsShared) {
  kv::embedded::TemporaryStore store(&clock), restored(&clock);
  kv::testing::RemoteStore remote(*store);
  for (const bool is_shared : {false, true}) {
    bytes.clear();
    back_up(is_shared ? static_cast<kv::Database&>(remote) : *store);
    restore(*restored);
    EXPECT_EQ(read.shared, is_shared);
  }
}

TEST_F(Backup, OfAStoreThatWasRestoredAMomentAgo) {
  kv::embedded::TemporaryStore first(&clock);
  commit(*first);
  // A store that is ahead of the clock, because the clock was set back.
  first->advance_version(clock.wall_ms() * 1000 + 10 * kHourVersions);
  back_up(*first);
  clock.advance(hours(1));
  const kv::Version lost = commit(*first, 100);
  kv::embedded::TemporaryStore restored(&clock);
  restore(*restored);
  EXPECT_GT(commit(*restored), lost);
}

}  // namespace
}  // namespace divan::backup
