// RocksDB with our memtables, compared with RocksDB with its own.
#include "divan/kv/embedded/memtable.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include "divan/base/rng.h"
#include "divan/kv/embedded/rocksdb_options.h"
#include "divan/kv/embedded/snapshot.h"

namespace divan::kv::embedded {
namespace {

class MemoryStore {
 public:
  explicit MemoryStore(std::shared_ptr<rocksdb::MemTableRepFactory> memtables)
      : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    Options own;
    own.env = env_.get();
    auto options = rocksdb_options(own);
    if (memtables) options.memtable_factory = std::move(memtables);
    rocksdb::DB* db = nullptr;
    check_status(rocksdb::DB::Open(options, "/store", &db));
    db_.reset(db);
  }
  rocksdb::DB* operator->() { return db_.get(); }

  using Rows = std::vector<std::pair<std::string, std::string>>;

  // From `begin` on in one direction, up to 20 rows.
  Rows rows(const rocksdb::Snapshot* snapshot, const std::string& begin, bool forward) {
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options(snapshot)));
    Rows rows;
    forward ? it->Seek(begin) : it->SeekForPrev(begin);
    for (; it->Valid() && rows.size() < 20; forward ? it->Next() : it->Prev()) {
      rows.emplace_back(it->key().ToString(), it->value().ToString());
    }
    check_status(it->status());
    return rows;
  }
  Rows all(bool forward) {
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options(nullptr)));
    Rows rows;
    for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); forward ? it->Next() : it->Prev()) {
      rows.emplace_back(it->key().ToString(), it->value().ToString());
    }
    check_status(it->status());
    return rows;
  }
  std::string get(const rocksdb::Snapshot* snapshot, const std::string& key) {
    std::string value;
    const auto status = db_->Get(options(snapshot), key, &value);
    return status.IsNotFound() ? "none" : status.ok() ? "=" + value : status.ToString();
  }

 private:
  static rocksdb::ReadOptions options(const rocksdb::Snapshot* snapshot) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.total_order_seek = true;
    return options;
  }

  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

TEST(MemTable, IsUsedByTheStore) {
  EXPECT_STREQ(rocksdb_options({}).memtable_factory->Name(), memtable_factory()->Name());
}

TEST(MemTable, ReadsAsRocksDbsOwn) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRng rng(seed);
    MemoryStore ours(nullptr), theirs(std::make_shared<rocksdb::SkipListFactory>());
    std::vector<std::pair<const rocksdb::Snapshot*, const rocksdb::Snapshot*>> snapshots{{nullptr, nullptr}};
    const auto random_key = [&] {
      std::string key = "key" + std::to_string(rng.below(300));
      if (rng.below(30) == 0) key.append(150, 'x');
      return key;
    };
    for (int step = 0; step < 400; ++step) {
      rocksdb::WriteBatch batch;
      for (auto count = 1 + rng.below(10); count > 0; --count) {
        const std::string key = random_key();
        switch (rng.below(8)) {
          case 0:
          case 1: check_status(batch.Delete(key)); break;
          case 2: check_status(batch.DeleteRange(key, key + "5")); break;
          default: check_status(batch.Put(key, std::to_string(rng.below(1'000'000)))); break;
        }
      }
      auto copy = batch;
      check_status(ours->Write({}, &batch));
      check_status(theirs->Write({}, &copy));
      if (rng.below(40) == 0) snapshots.emplace_back(ours->GetSnapshot(), theirs->GetSnapshot());
      if (rng.below(100) == 0) {
        check_status(ours->Flush({}));
        check_status(theirs->Flush({}));
      }
      for (int i = 0; i < 4; ++i) {
        const auto [our, their] = snapshots[rng.below(snapshots.size())];
        const std::string key = random_key();
        ASSERT_EQ(ours.get(our, key), theirs.get(their, key)) << key;
        ASSERT_EQ(ours.rows(our, key, true), theirs.rows(their, key, true)) << key;
        ASSERT_EQ(ours.rows(our, key, false), theirs.rows(their, key, false)) << key;
      }
    }
    EXPECT_EQ(ours.all(true), theirs.all(true));
    EXPECT_EQ(ours.all(false), theirs.all(false));
    EXPECT_FALSE(ours.all(true).empty());
    for (const auto& [our, their] : snapshots) {
      if (our == nullptr) continue;
      ours->ReleaseSnapshot(our);
      theirs->ReleaseSnapshot(their);
    }
  }
}

TEST(MemTable, EstimatesSizes) {
  MemoryStore store(nullptr);
  for (int i = 0; i < 1'000; ++i)
    check_status(store->Put({}, std::to_string(1'000 + i), std::string(1'000, 'v')));
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  const auto estimate = [&](const std::string& begin, const std::string& end) {
    const rocksdb::Range range(begin, end);
    std::uint64_t bytes = 0;
    check_status(store->GetApproximateSizes(options, store->DefaultColumnFamily(), &range, 1, &bytes));
    return bytes;
  };
  EXPECT_GT(estimate("1000", "2"), 200'000);
  EXPECT_LT(estimate("1000", "2"), 5'000'000);
  EXPECT_EQ(estimate("2", "3"), 0);
}

}  // namespace
}  // namespace divan::kv::embedded
