#include "divan/kv/embedded/group_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "divan/base/rng.h"
#include "divan/kv/embedded/snapshot.h"

namespace divan::kv::embedded {
namespace {

// Applies a batch to rows. Records its writes of single keys.
struct Applied : rocksdb::WriteBatch::Handler {
  std::map<std::string, std::string> rows;
  std::vector<std::string> keys;

  rocksdb::Status PutCF(std::uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    keys.push_back(key.ToString());
    rows[key.ToString()] = value.ToString();
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(std::uint32_t, const rocksdb::Slice& key) override {
    keys.push_back(key.ToString());
    rows.erase(key.ToString());
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteRangeCF(std::uint32_t, const rocksdb::Slice& begin,
                                const rocksdb::Slice& end) override {
    rows.erase(rows.lower_bound(begin.ToString()), rows.lower_bound(end.ToString()));
    return rocksdb::Status::OK();
  }
};

TEST(GroupBatch, WritesTheLastValueOfEachKeyInOrder) {
  GroupBatch group;
  group.set("c", "1");
  group.set("a", "2");
  group.set("c", "3");
  group.clear("b");
  group.set("d", "4");
  group.clear("d");
  group.clear("a");
  group.set("a", group.keep("5"));
  rocksdb::WriteBatch batch;
  check_status(group.append_to(batch));
  Applied applied;
  applied.rows = {{"b", "0"}, {"d", "0"}};
  check_status(batch.Iterate(&applied));
  EXPECT_EQ(applied.keys, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(applied.rows, (std::map<std::string, std::string>{{"a", "5"}, {"c", "3"}}));
}

TEST(GroupBatch, EqualsTheWritesOneAfterTheOther) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRng rng(seed);
    std::map<std::string, std::string> expected;
    for (int i = 0; i < 20; ++i) expected[std::to_string(rng.below(60))] = "before";
    Applied applied;
    applied.rows = expected;
    GroupBatch group;
    for (auto count = rng.below(60); count > 0; --count) {
      const auto key = group.keep(std::to_string(rng.below(60)));
      const auto chosen = rng.below(6);
      if (chosen == 0) {
        group.clear(key);
        expected.erase(std::string(key));
      } else if (chosen == 1) {
        const auto end = group.keep(std::string(key) + "5");
        group.clear_range(key, end);
        expected.erase(expected.lower_bound(std::string(key)), expected.lower_bound(std::string(end)));
      } else {
        const auto value = group.keep(std::to_string(count));
        group.set(key, value);
        expected[std::string(key)] = value;
      }
    }
    rocksdb::WriteBatch batch;
    check_status(group.append_to(batch));
    check_status(batch.Iterate(&applied));
    EXPECT_EQ(applied.rows, expected);
    EXPECT_TRUE(std::is_sorted(applied.keys.begin(), applied.keys.end()));
    EXPECT_EQ(std::adjacent_find(applied.keys.begin(), applied.keys.end()), applied.keys.end());
  }
}

}  // namespace
}  // namespace divan::kv::embedded
