#include "divan/kv/embedded/key_prefix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

std::string row(std::int64_t database, int section, std::string_view id) {
  std::string key;
  tuple::Packer(key).string("db").integer(database).integer(section).string(id);
  return key;
}

std::string with(std::string key, std::int64_t number) {
  tuple::Packer(key).integer(number);
  return key;
}

TEST(KeyPrefix, FilterPrefixEndsBehindTheString) {
  using namespace std::string_literals;
  for (const auto& id : {"a"s, ""s, "a\0b"s, "\0"s, "\0\xff"s}) {
    const std::string prefix = row(7, 2, id);
    EXPECT_EQ(filter_prefix(prefix), prefix);
    EXPECT_EQ(filter_prefix(with(prefix, 1000)), prefix);
    EXPECT_EQ(filter_prefix(std::string_view(prefix).substr(0, prefix.size() - 1)), "");
  }
}

TEST(KeyPrefix, NoneForOtherKeys) {
  std::string no_string;
  tuple::Packer(no_string).string("db").integer(1).integer(3).integer(5);
  std::string short_key;
  tuple::Packer(short_key).string("a").string("b");
  for (const std::string& key : {no_string, short_key, std::string(), std::string("plain text"),
                                 std::string("\xff/version"), std::string("\x1c\x01")}) {
    EXPECT_EQ(filter_prefix(key), "") << key;
  }
}

TEST(KeyPrefix, ARangeOfOneThingSharesIt) {
  const std::string prefix = row(1, 2, "a");
  EXPECT_TRUE(share_filter_prefix(prefix, prefix + '\xff'));
  EXPECT_TRUE(share_filter_prefix(with(prefix, 1), with(prefix, 5)));
  EXPECT_FALSE(share_filter_prefix(prefix, row(1, 2, "b")));
  // The keys of the id "a\0" begin with those bytes, too.
  EXPECT_FALSE(share_filter_prefix(prefix, prefix + "\xff\x01"));
  EXPECT_FALSE(share_filter_prefix("a", "b"));
}

// RocksDB keeps one set of hints for a memtable's rows and its deleted ranges, which are two lists: with
// hints, rows got lost in the wrong one.
TEST(KeyPrefix, RowsAreThereAfterARangeBesideThemWasCleared) {
  TemporaryStore store;
  std::map<std::string, std::string> expected;
  for (int round = 0; round < 20; ++round) {
    store->run([&](Transaction& tx) {
      for (int i = 0; i < 200; ++i) {
        const std::string key = with(row(1, 7, std::to_string(round)), i);
        tx.set(key, expected[key] = std::to_string(i));
      }
    });
    // Enough rows for a range deletion.
    store->run([&](Transaction& tx) {
      const std::string begin = with(row(1, 7, std::to_string(round)), 50);
      const std::string end = with(row(1, 7, std::to_string(round)), 150);
      tx.clear_range(begin, end);
      expected.erase(expected.lower_bound(begin), expected.lower_bound(end));
    });
    std::map<std::string, std::string> found;
    store->run([&](Transaction& tx) {
      found.clear();
      for (auto& stored : tx.get_range(KeyRange{"", "\xff"}).rows) found.emplace(stored.key, stored.value);
    });
    ASSERT_EQ(found, expected) << round;
  }
}

// Rows of some things but not of others, in files and in memory: each range shows exactly its rows.
TEST(KeyPrefix, FiltersHideNothing) {
  using namespace std::string_literals;
  TemporaryStore store;
  std::map<std::string, std::string> expected;
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) ids.push_back("id" + std::to_string(i) + (i % 3 == 0 ? "\0"s : ""s));
  ids.push_back("id1\0"s);
  for (int part = 0; part < 2; ++part) {
    store->run([&](Transaction& tx) {
      for (std::size_t i = 0; i < ids.size(); i += 2) {
        const std::string key = with(row(1, 2, ids[i]), part);
        tx.set(key, ids[i]);
        expected[key] = ids[i];
      }
    });
    if (part == 0) store.reopen();
  }
  store->run([&](Transaction& tx) {
    for (const auto& id : ids) {
      const std::string begin = row(1, 2, id);
      for (const auto& end : {begin + '\xff', begin + "\xff\xff", row(1, 3, "")}) {
        for (const bool reverse : {false, true}) {
          auto rows = tx.get_range(KeyRange{begin, end}, {.reverse = reverse}).rows;
          if (reverse) std::reverse(rows.begin(), rows.end());
          std::map<std::string, std::string> found;
          for (auto& found_row : rows) found.emplace(found_row.key, found_row.value);
          const std::map<std::string, std::string> wanted(expected.lower_bound(begin),
                                                          expected.lower_bound(end));
          EXPECT_EQ(found, wanted) << id;
        }
      }
    }
  });
}

}  // namespace
}  // namespace divan::kv::embedded
