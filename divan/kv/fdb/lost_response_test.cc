// Commits whose response does not come, on a scripted client: no cluster is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "divan/base/bytes.h"
#include "divan/kv/fdb/dump.h"
#include "divan/kv/fdb/transaction.h"

namespace divan::kv::fdb {

// The client's objects, as the scripted one has them.
struct FdbFuture {
  bool ready = true;
  FdbError error = 0;
  std::int64_t number = 0;
  std::optional<std::string> bytes{};
  std::vector<FdbKeyValue> rows{};
  Api::Callback callback = nullptr;
  void* parameter = nullptr;
};
struct FdbDatabaseHandle {};
struct FdbTransactionHandle {
  std::map<std::string, std::string> writes;
  std::string stamped_key;
  std::vector<KeyRange> read_conflicts, write_conflicts;
};

namespace {

// The outcome of a commit.
enum class Fate {
  committed,
  silent,
  cut_off,  // and there are no responses from then on
  committed_silently,
  committed_without_stamp,
  committed_unknown
};

struct Script {
  std::map<std::string, std::string> rows;
  std::int64_t version = 100;
  std::deque<Fate> commits;  // then all are committed
  bool is_silent = false;    // reads get no response
  bool takes_callbacks = true;
  int commit_count = 0;
  std::vector<FdbTransactionHandle> under_way;  // commits that were sent, and may still arrive
};
Script* script = nullptr;

// The cluster commits a transaction. It refuses those that are under way and have read what this one writes.
void make(const FdbTransactionHandle& tx) {
  ++script->version;
  for (const auto& [key, value] : tx.writes) script->rows[key] = value;
  std::erase_if(script->under_way, [&](const FdbTransactionHandle& other) {
    return std::ranges::any_of(other.read_conflicts, [&](const KeyRange& read) {
      return std::ranges::any_of(tx.write_conflicts, [&](const KeyRange& write) {
        return read.begin < write.end && write.begin < read.end;
      });
    });
  });
}

std::string text(Api::Bytes bytes, int size) { return std::string(view(bytes, size)); }

FdbFuture* silence() { return new FdbFuture{.ready = false}; }

std::string stamp_of(std::int64_t version) {
  std::string stamp;
  append_u64(stamp, static_cast<std::uint64_t>(version));
  return stamp + std::string(2, '\0');
}

Fate next_fate() {
  if (script->commits.empty()) return Fate::committed;
  const Fate fate = script->commits.front();
  script->commits.pop_front();
  return fate;
}

FdbFuture* commit(FdbTransactionHandle* tx) {
  ++script->commit_count;
  const Fate fate = next_fate();
  script->is_silent = script->is_silent || fate == Fate::cut_off;
  if (fate == Fate::silent || fate == Fate::cut_off) {
    script->under_way.push_back(*tx);
  } else {
    make(*tx);
    if (!tx->stamped_key.empty()) script->rows[tx->stamped_key] = stamp_of(script->version);
  }
  const bool answers = fate == Fate::committed || fate == Fate::committed_without_stamp;
  if (fate == Fate::committed_unknown)
    return new FdbFuture{.error = static_cast<FdbError>(ErrorCode::commit_unknown_result)};
  return answers ? new FdbFuture : silence();
}

Api scripted() {
  Api api;
  api.get_error = [](FdbError) { return "an error"; };
  api.error_predicate = [](int predicate, FdbError code) {
    const bool is_unknown = code == static_cast<FdbError>(ErrorCode::commit_unknown_result);
    return is_unknown && predicate == static_cast<int>(ErrorPredicate::maybe_committed) ? 1 : 0;
  };
  api.run_network = []() { return 0; };
  api.stop_network = []() { return 0; };
  api.future_is_ready = [](FdbFuture* future) { return future->ready ? 1 : 0; };
  api.future_get_error = [](FdbFuture* future) { return future->error; };
  api.future_destroy = [](FdbFuture* future) {
    if (future->callback != nullptr) future->callback(future, future->parameter);
    delete future;
  };
  api.future_set_callback = [](FdbFuture* future, Api::Callback callback, void* parameter) {
    if (!script->takes_callbacks) return 1;
    future->callback = callback;
    future->parameter = parameter;
    return 0;
  };
  api.future_get_int64 = [](FdbFuture* future, std::int64_t* number) { return *number = future->number, 0; };
  api.future_get_key = [](FdbFuture* future, Api::Bytes* key, int* size) {
    *key = data_of(*future->bytes);
    *size = size_of(*future->bytes);
    return 0;
  };
  api.future_get_keyvalue_array = [](FdbFuture* future, const FdbKeyValue** rows, int* count, FdbBool* more) {
    *rows = future->rows.data();
    *count = static_cast<int>(future->rows.size());
    *more = future->rows.empty() ? 0 : 1;
    return 0;
  };
  api.future_get_value = [](FdbFuture* future, FdbBool* present, Api::Bytes* value, int* size) {
    *present = future->bytes ? 1 : 0;
    if (future->bytes) *value = data_of(*future->bytes), *size = size_of(*future->bytes);
    return 0;
  };
  api.create_database = [](const char*, FdbDatabaseHandle** database) {
    return *database = new FdbDatabaseHandle, 0;
  };
  api.database_destroy = [](FdbDatabaseHandle* database) { delete database; };
  api.database_create_transaction = [](FdbDatabaseHandle*, FdbTransactionHandle** tx) {
    return *tx = new FdbTransactionHandle, 0;
  };
  api.transaction_destroy = [](FdbTransactionHandle* tx) { delete tx; };
  api.transaction_get_read_version = [](FdbTransactionHandle*) {
    return script->is_silent ? silence() : new FdbFuture{.number = script->version};
  };
  api.transaction_get = [](FdbTransactionHandle*, Api::Bytes key, int size, FdbBool) {
    if (script->is_silent) return silence();
    auto* future = new FdbFuture;
    if (const auto row = script->rows.find(text(key, size)); row != script->rows.end())
      future->bytes = row->second;
    return future;
  };
  // Pages have one row.
  api.transaction_get_range = [](FdbTransactionHandle*, Api::Bytes begin, int begin_size, FdbBool, int,
                                 Api::Bytes end, int end_size, FdbBool, int, int, int, int, int, FdbBool,
                                 FdbBool) {
    auto* future = new FdbFuture;
    const auto row = script->rows.lower_bound(text(begin, begin_size));
    if (row != script->rows.end() && row->first < text(end, end_size)) {
      const auto& [key, value] = *row;
      future->rows.push_back({data_of(key), size_of(key), data_of(value), size_of(value)});
    }
    return future;
  };
  api.transaction_set_read_version = [](FdbTransactionHandle*, std::int64_t) {};
  api.transaction_get_committed_version = [](FdbTransactionHandle*, std::int64_t* version) {
    return *version = script->version, 0;
  };
  api.transaction_set = [](FdbTransactionHandle* tx, Api::Bytes key, int key_size, Api::Bytes value,
                           int size) { tx->writes[text(key, key_size)] = text(value, size); };
  api.transaction_clear = [](FdbTransactionHandle* tx, Api::Bytes key, int size) {
    tx->write_conflicts.push_back({text(key, size), text(key, size) + '\0'});
  };
  api.transaction_clear_range = [](FdbTransactionHandle*, Api::Bytes, int, Api::Bytes, int) {};
  api.transaction_atomic_op = [](FdbTransactionHandle* tx, Api::Bytes key, int size, Api::Bytes, int,
                                 int mutation) {
    if (mutation == static_cast<int>(Mutation::set_versionstamped_value)) tx->stamped_key = text(key, size);
  };
  api.transaction_add_conflict_range = [](FdbTransactionHandle* tx, Api::Bytes begin, int begin_size,
                                          Api::Bytes end, int end_size, int type) {
    const bool is_read = type == static_cast<int>(ConflictRange::read);
    (is_read ? tx->read_conflicts : tx->write_conflicts)
        .push_back({text(begin, begin_size), text(end, end_size)});
    return 0;
  };
  api.transaction_get_versionstamp = [](FdbTransactionHandle*) {
    const bool comes = script->commits.empty() || script->commits.front() == Fate::committed;
    return comes ? new FdbFuture{.bytes = stamp_of(script->version + 1)} : silence();
  };
  api.transaction_watch = [](FdbTransactionHandle*, Api::Bytes, int) { return silence(); };
  api.transaction_commit = &commit;
  api.transaction_on_error = [](FdbTransactionHandle* tx, FdbError) {
    *tx = {};
    return new FdbFuture;
  };
  api.transaction_reset = [](FdbTransactionHandle* tx) { *tx = {}; };
  return api;
}

struct LostResponse : testing::Test {
  Script now;
  SystemClock clock;
  SeededRng rng{1};
  Client client{scripted()};
  Store store{.cluster = Cluster(client, "", clock, std::chrono::milliseconds(20)),
              .subspace = Subspace("x"),
              .tag = {},
              .rng = rng,
              .watches = Watches(10)};
  FdbTransaction tx{store};

  void SetUp() override { script = &now; }

  std::optional<Error> failure() {
    tx.set("a", "1");
    try {
      tx.commit();
    } catch (const Error& error) { return error; }
    return std::nullopt;
  }
  bool is_written() const { return now.rows.contains(store.subspace.in_cluster("a")); }
};

TEST_F(LostResponse, ACommitThatWasMadeIsFound) {
  now.commits = {Fate::committed_silently};
  EXPECT_FALSE(failure());
  EXPECT_TRUE(is_written());
  EXPECT_EQ(tx.committed_version(), 101);
  EXPECT_EQ(tx.versionstamp(), stamp_of(101));
}

TEST_F(LostResponse, ACommitOfWhichTheClientDoesNotKnowIsFound) {
  now.commits = {Fate::committed_unknown};
  EXPECT_FALSE(failure());
  EXPECT_EQ(tx.committed_version(), 101);
}

TEST_F(LostResponse, ACommitWhoseStampDoesNotComeIsFound) {
  now.commits = {Fate::committed_without_stamp};
  EXPECT_FALSE(failure());
  EXPECT_EQ(tx.committed_version(), 101);
}

TEST_F(LostResponse, ACommitThatWasNotMadeIsTriedAgain) {
  now.commits = {Fate::silent};
  const auto error = failure();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::not_committed);
  tx.on_error(*error);
  EXPECT_FALSE(failure());
  EXPECT_TRUE(is_written());
}

// It arrives after commit() has thrown not_committed, when the transaction may have run again.
TEST_F(LostResponse, ACommitThatArrivesLateIsRefused) {
  now.commits = {Fate::silent};
  const auto error = failure();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::not_committed);
  EXPECT_TRUE(now.under_way.empty()) << "the cluster would still commit it";
  EXPECT_FALSE(is_written());
}

TEST_F(LostResponse, TheCommitThatSettlesMayBeLostAsWell) {
  now.commits = {Fate::silent, Fate::silent, Fate::committed_unknown};
  const auto error = failure();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::not_committed);
  EXPECT_EQ(now.commit_count, 4);
  EXPECT_FALSE(is_written());
}

TEST_F(LostResponse, WhereTheClusterStaysSilentTheOutcomeIsUnknownAndNothingIsDoneTwice) {
  now.commits = {Fate::cut_off};
  std::vector<bool> unknown;
  tx.on_outcome([&](const CommitOutcome& outcome) { unknown.push_back(outcome.unknown()); });
  const auto error = failure();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::commit_unknown_result);
  EXPECT_EQ(now.commit_count, 1);
  EXPECT_EQ(unknown, std::vector<bool>{true});
  try {
    tx.on_error(*error);
    FAIL();
  } catch (const Error& again) { EXPECT_TRUE(again.maybe_committed()); }
  // As new after a reset.
  now.is_silent = false;
  tx.reset();
  EXPECT_FALSE(failure());
}

// Each row takes longer than a version is read, so the dump proves twice that the rest is unchanged.
TEST_F(LostResponse, ADumpContinuesAfterALostResponse) {
  ManualClock time;
  Store slow{.cluster = Cluster(client, "", time, std::chrono::seconds(1)),
             .subspace = Subspace("x"),
             .tag = {},
             .rng = rng,
             .watches = Watches(10)};
  for (const char* key : {"a", "b"}) now.rows[slow.subspace.in_cluster(key)] = "1";
  now.commits = {Fate::committed_unknown};
  int rows = 0;
  dump_rows(slow, [&](std::string_view, std::string_view) {
    time.advance(std::chrono::seconds(2));
    return ++rows < 10;
  });
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(now.commit_count, 3);
}

// Its owner reads again, and does not wait for ever.
TEST_F(LostResponse, AWatchWhoseCallbackTheClientRefusesFiresAtTheCommit) {
  now.takes_callbacks = false;
  const auto watch = tx.watch("b");
  EXPECT_FALSE(watch->fired());
  EXPECT_FALSE(failure());
  EXPECT_TRUE(watch->fired());
}

TEST_F(LostResponse, AWatchIsFreedWithItsLastOwner) {
  now.takes_callbacks = false;  // a client that takes one calls it when the watch is cancelled
  auto [watch, entry] = store.watches.add(client.api(), [&] { return Future(client.api(), silence()); });
  const std::weak_ptr<WatchEntry> freed = entry;
  entry.reset();
  EXPECT_FALSE(freed.expired());
  watch.reset();
  EXPECT_TRUE(freed.expired());
}

TEST_F(LostResponse, ACommitThatWasNeverSentTimesOut) {
  now.is_silent = true;
  const auto error = failure();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::transaction_timed_out);
  EXPECT_EQ(now.commit_count, 0);
}

}  // namespace
}  // namespace divan::kv::fdb
