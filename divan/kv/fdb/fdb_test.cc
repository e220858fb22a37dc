// What the engine does that is not in the contract of every engine.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "divan/kv/fdb/temporary_store.h"
#include "divan/kv/fdb/transaction.h"

namespace divan::kv::fdb {
namespace {

// Why options cannot be opened.
std::string refusal(const Options& options) {
  SystemClock clock;
  SystemRng rng;
  try {
    FdbDatabase database(options, clock, rng);
  } catch (const divan::Error& error) { return error.reason(); }
  return "it was opened";
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(KvFdb, WithoutTheLibraryItSaysWhatToInstall) {
  SystemRng rng;
  Options options;
  options.client.library = "/nonexistent/libfdb_c.so";
  const std::string why = refusal(options);
  EXPECT_TRUE(has(why, "foundationdb-clients") && has(why, "/nonexistent/libfdb_c.so")) << why;
  EXPECT_FALSE(has(why, "\n"));
}

TEST(KvFdb, AnotherLibraryIsRefused) {
  Options options;
  options.client.library = "libdl.so.2";
  EXPECT_TRUE(has(refusal(options), "it is no client library")) << refusal(options);
}

// Whatever tests have used the client: exit() is too late.
class StopsClient : public testing::EmptyTestEventListener {
  void OnTestProgramEnd(const testing::UnitTest&) override { Client::stop(); }
};

[[maybe_unused]] const bool stops_client = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new StopsClient);
  return true;
}();

class KvFdbCluster : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_cluster_file()) GTEST_SKIP() << kNoTestCluster;
  }
  SystemClock clock_;
  SystemRng rng_;
};

TEST_F(KvFdbCluster, AMissingFileAndAnUnreachableClusterAreNamed) {
  Options options = temporary_options(rng_);
  options.start_timeout = std::chrono::milliseconds(300);
  const auto file = std::filesystem::temp_directory_path() / ("divan-cluster-" + rng_.uuid());
  options.cluster_file = file;
  EXPECT_TRUE(has(refusal(options), file.string() + ": No such file")) << refusal(options);
  std::ofstream(file) << "no cluster file\n";
  EXPECT_TRUE(has(refusal(options), file.string())) << refusal(options);
  std::ofstream(file) << "some:id@127.0.0.1:1\n";
  EXPECT_TRUE(has(refusal(options), "has not answered")) << refusal(options);
  std::filesystem::remove(file);
}

TEST_F(KvFdbCluster, AnotherFormatAndForeignRowsAreRefused) {
  TemporaryStore store(clock_);
  const Subspace subspace(store.options().name);
  const Cluster cluster(Client::of_this_process(store.options().client), store.options().cluster_file, clock_,
                        std::chrono::seconds(60));
  const auto write = [&](std::string_view key, const std::optional<std::string>& value) {
    run_raw(cluster, [&](RawTransaction& tx) -> FdbError {
      if (value) {
        tx.set(key, *value);
      } else {
        tx.clear(key);
      }
      return 0;
    });
  };
  EXPECT_EQ(refusal(store.options()), "it was opened");
  write(subspace.format_key(), std::to_string(kFormat + 1));
  EXPECT_TRUE(has(refusal(store.options()), "newer than this version")) << refusal(store.options());
  write(subspace.format_key(), std::to_string(kOldestFormat - 1));
  EXPECT_TRUE(has(refusal(store.options()), "older than this version")) << refusal(store.options());
  write(subspace.format_key(), std::to_string(kOldestFormat));
  const auto format = [&] {
    std::optional<std::string> value;
    run_raw(cluster, [&](RawTransaction& tx) -> FdbError {
      const Future row = tx.get(subspace.format_key(), false);
      if (const FdbError code = cluster.outcome_of(row); code != 0) return code;
      value = tx.value_in(row);
      return 0;
    });
    return value;
  };
  Options to_read = store.options();
  to_read.raises_format = false;
  EXPECT_EQ(refusal(to_read), "it was opened");
  EXPECT_EQ(format(), std::to_string(kOldestFormat));
  EXPECT_EQ(refusal(store.options()), "it was opened");
  EXPECT_EQ(format(), std::to_string(kFormat)) << "an older version is to refuse it";
  write(subspace.format_key(), std::nullopt);
  write(subspace.in_cluster("a"), "of somebody");
  EXPECT_TRUE(has(refusal(store.options()), "not Divan's")) << refusal(store.options());
}

TEST_F(KvFdbCluster, StoresOfDifferentNamesDoNotMeet) {
  TemporaryStore one(clock_), other(clock_);
  one->run([](Transaction& tx) { tx.set("a", "1"); });
  other->run([](Transaction& tx) {
    EXPECT_EQ(tx.get("a"), std::nullopt);
    EXPECT_TRUE(tx.get_range({"", "\xff"}).rows.empty());
    tx.clear_range("", "\xff");
  });
  one->run([](Transaction& tx) { EXPECT_EQ(tx.get("a"), "1"); });
}

// The cluster starts no transactions for a while then, which must not look like a cluster that is gone.
TEST_F(KvFdbCluster, AfterALargeJumpOfVersionsTransactionsAreStarted) {
  TemporaryStore store(clock_);
  Options hasty = store.options();
  hasty.answer_timeout = std::chrono::seconds(2);
  FdbDatabase database(hasty, clock_, rng_);
  const Version far = database.begin()->read_version() + 4'000'000'000;
  database.advance_version(far);
  for (int i = 0; i < 20; ++i) {
    database.run([&](Transaction& tx) { EXPECT_GT(tx.read_version(), far); });
    clock_.sleep(std::chrono::milliseconds(100));
  }
}

TEST_F(KvFdbCluster, TwoProcessesSeeEachOthersWritesAtOnce) {
  TemporaryStore store(clock_);
  FdbDatabase other(store.options(), clock_, rng_);
  const auto watch = other.run([](Transaction& tx) { return tx.watch("a"); });
  for (int i = 0; i < 20; ++i) {
    store->run([&](Transaction& tx) { tx.set("a", std::to_string(i)); });
    EXPECT_EQ(other.run([](Transaction& tx) { return tx.get("a"); }), std::to_string(i));
  }
  EXPECT_TRUE(watch->wait_until(clock_, clock_.now() + std::chrono::seconds(60)));
  EXPECT_TRUE(watch->fired());
}

TEST_F(KvFdbCluster, CommitsAndConflictsAreCounted) {
  TemporaryStore store(clock_);
  const auto first = store->begin(), second = store->begin();
  for (Transaction* tx : {first.get(), second.get()}) {
    tx->get("key");
    tx->set("key", "value");
  }
  first->commit();
  EXPECT_THROW(second->commit(), Error);
  EXPECT_EQ(store->commits(), 1u);
  EXPECT_EQ(store->conflicts(), 1u);
}

// A store that is filled from a backup.
TEST_F(KvFdbCluster, AnUnfinishedStoreIsServedByNobodyAndBegunAnew) {
  Options options = temporary_options(rng_);
  options.unfinished = true;
  for (int i = 0; i < 2; ++i) {
    FdbDatabase database(options, clock_, rng_);
    database.run([&](Transaction& tx) {
      EXPECT_TRUE(tx.get_range({"", "\xff"}).rows.empty());
      tx.set(std::to_string(i), "");
    });
    Options server = options;
    server.unfinished = false;
    EXPECT_TRUE(has(refusal(server), "not finished")) << refusal(server);
    if (i == 0) continue;
    database.finish();
    EXPECT_EQ(refusal(server), "it was opened");
    EXPECT_TRUE(has(refusal(options), "an empty one")) << refusal(options);
  }
  erase_store(options, clock_);
}

// Dumps that last longer than the cluster keeps a version: the visitor takes its time.
class SlowDump {
 public:
  SlowDump(Database& store, const Clock& clock, int rows) : store_(store), clock_(clock) {
    store.run([&](Transaction& tx) {
      for (int i = 0; i < rows; ++i) tx.set(fmt::format("k{:04}", i), std::string(1000, 'v'));
    });
  }
  // How many rows there were; `at_row` is called when so many have gone by.
  int run(int at_row, const std::function<void()>& then) {
    int rows = 0;
    store_.dump([&](auto, auto) {
      if (++rows % 30 == 0) clock_.sleep(std::chrono::milliseconds(600));
      if (rows == at_row) then();
      return true;
    });
    return rows;
  }

 private:
  Database& store_;
  const Clock& clock_;
};

TEST_F(KvFdbCluster, ADumpOutlivesItsVersionIfTheRemainingRowsDoNotChange) {
  TemporaryStore store(clock_);
  SlowDump dump(*store, clock_, 400);
  EXPECT_EQ(dump.run(200, [&] { store->run([](Transaction& tx) { tx.set("a", "too late to be seen"); }); }),
            400);
}

TEST_F(KvFdbCluster, ADumpFailsIfARemainingRowChanges) {
  TemporaryStore store(clock_);
  SlowDump dump(*store, clock_, 400);
  try {
    dump.run(200, [&] { store->run([](Transaction& tx) { tx.set("z", "of another moment"); }); });
    ADD_FAILURE() << "It showed rows of two moments.";
  } catch (const Error& error) { EXPECT_EQ(error.code(), ErrorCode::transaction_too_old); }
}

TEST_F(KvFdbCluster, SilenceOfTheClusterIsAnErrorAndNotForEver) {
  // The file is valid, but no process listens at its address.
  const auto file = std::filesystem::temp_directory_path() / ("divan-cluster-" + rng_.uuid());
  std::ofstream(file) << "some:id@127.0.0.1:1\n";
  const Cluster silent(Client::of_this_process(temporary_options(rng_).client), file, clock_,
                       std::chrono::milliseconds(200));
  Store store{.cluster = Cluster(silent.client(), file, clock_, std::chrono::milliseconds(200)),
              .subspace = Subspace("x"),
              .tag = {},
              .rng = rng_,
              .watches = Watches(10)};
  FdbTransaction tx(store);
  const auto code_of = [](const auto& fn) {
    try {
      fn();
    } catch (const Error& error) { return error.code(); }
    return ErrorCode::io_error;
  };
  EXPECT_EQ(code_of([&] { tx.get("a", Isolation::serializable); }), ErrorCode::transaction_timed_out);
  tx.reset();
  tx.set("a", "1");
  EXPECT_EQ(code_of([&] { tx.commit(); }), ErrorCode::transaction_timed_out);  // of its read version
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace divan::kv::fdb
