#include "divan/kv/embedded/entry_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <thread>

#include "divan/base/rng.h"

namespace divan::kv::embedded {
namespace {

using Node = EntryList::Node;

// An entry as RocksDB writes it, without a value.
std::string encoded(std::string_view key, std::uint64_t tag) {
  std::string entry;
  for (auto length = static_cast<std::uint32_t>(key.size() + sizeof tag);; length >>= 7) {
    entry += static_cast<char>(length < 0x80 ? length : (length & 0x7f) | 0x80);
    if (length < 0x80) break;
  }
  entry += key;
  entry.append(reinterpret_cast<const char*>(&tag), sizeof tag);
  return entry;
}

// A list that owns its entries.
struct OwnedList {
  EntryList list;
  std::deque<std::vector<std::uint64_t>> memory;

  bool insert(std::string_view key, std::uint64_t tag) {
    const std::size_t height = list.random_height();
    const std::string entry = encoded(key, tag);
    auto& node_memory = memory.emplace_back((Node::bytes(height) + entry.size()) / sizeof(std::uint64_t) + 1);
    Node* const node = Node::make(reinterpret_cast<char*>(node_memory.data()), height);
    std::memcpy(node->entry(), entry.data(), entry.size());
    return list.insert(node);
  }
};

using Key = std::pair<std::string, std::uint64_t>;
struct Before {
  bool operator()(const Key& a, const Key& b) const {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  }
};
using Model = std::set<Key, Before>;

Key key_of(const Node* node) { return {std::string(node->key().key), node->key().tag}; }
InternalKey internal(const Key& key) { return {key.first, key.second}; }

void expect_node(const Node* node, const Model& model, Model::const_iterator expected) {
  ASSERT_EQ(node == nullptr, expected == model.end());
  if (node != nullptr) { ASSERT_EQ(key_of(node), *expected); }
}

void compare_at(const EntryList& list, const Model& model, const Key& at) {
  const auto from = model.lower_bound(at);
  expect_node(list.find(internal(at)), model, from);
  expect_node(list.find_before(internal(at)), model, from == model.begin() ? model.end() : std::prev(from));
  expect_node(list.first(), model, model.begin());
  expect_node(list.last(), model, model.empty() ? model.end() : std::prev(model.end()));
}

TEST(EntryList, ParsesEntries) {
  for (const std::size_t size : {0U, 1U, 119U, 120U, 127U, 128U, 16'375U, 16'376U, 2'100'000U}) {
    const std::string key(size, 'k');
    const std::string entry = encoded(key, 0x0102030405060708);
    const InternalKey parsed = InternalKey::of_entry(entry.data());
    EXPECT_EQ(parsed.key.size(), size);
    EXPECT_TRUE(parsed.key == key);
    EXPECT_EQ(parsed.tag, 0x0102030405060708);
  }
}

TEST(EntryList, OrdersByKeyThenLaterTagsFirst) {
  OwnedList owned;
  compare_at(owned.list, {}, {"a", 1});
  EXPECT_TRUE(owned.insert("b", 1));
  EXPECT_TRUE(owned.insert("b", 3));
  EXPECT_TRUE(owned.insert("a", 2));
  EXPECT_TRUE(owned.insert("ab", 0));
  EXPECT_TRUE(owned.insert("b", 2));
  EXPECT_TRUE(owned.insert("", 9));
  EXPECT_FALSE(owned.insert("b", 2));
  EXPECT_FALSE(owned.insert("", 9));
  std::vector<Key> found;
  for (const Node* node = owned.list.first(); node != nullptr; node = node->next())
    found.push_back(key_of(node));
  EXPECT_EQ(found, (std::vector<Key>{{"", 9}, {"a", 2}, {"ab", 0}, {"b", 3}, {"b", 2}, {"b", 1}}));
}

// The orders in which batches come: keys that grow or shrink, runs of neighbours at random places, new
// versions of the same keys, and single random keys.
TEST(EntryList, IsLikeASet) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededRng rng(seed);
    OwnedList owned;
    Model model;
    std::uint64_t tag = 1000;
    const auto random_key = [&] {
      std::string key = std::to_string(rng.below(400));
      if (rng.below(50) == 0) key.append(200, '\xff');
      return key;
    };
    for (int run = 0; run < 60; ++run) {
      std::vector<std::string> keys;
      for (auto count = 1 + rng.below(20); count > 0; --count) keys.push_back(random_key());
      const auto order = rng.below(3);
      if (order != 0) std::sort(keys.begin(), keys.end());
      if (order == 1) std::reverse(keys.begin(), keys.end());
      for (const auto& key : keys) {
        const Key entry{key, rng.below(10) == 0 ? rng.below(tag) : ++tag};
        ASSERT_EQ(owned.insert(entry.first, entry.second), model.insert(entry).second);
        compare_at(owned.list, model, entry);
        compare_at(owned.list, model, {random_key(), rng.below(tag + 10)});
      }
    }
    auto expected = model.begin();
    for (const Node* node = owned.list.first(); node != nullptr; node = node->next(), ++expected) {
      ASSERT_NE(expected, model.end());
      ASSERT_EQ(key_of(node), *expected);
    }
    EXPECT_EQ(expected, model.end());
  }
}

TEST(EntryList, EstimatesPositions) {
  OwnedList owned;
  EXPECT_EQ(owned.list.estimate_before({"5", 0}), 0);
  for (int i = 0; i < 10'000; ++i) owned.insert(std::to_string(10'000 + i), 1);
  EXPECT_EQ(owned.list.estimate_before({"10000", 1}), 0);
  const auto half = owned.list.estimate_before({"15000", 1});
  EXPECT_GT(half, 1'000);
  EXPECT_LT(half, 25'000);
  EXPECT_GE(owned.list.estimate_before({"3", 0}), half);
}

// Readers see the entries in order, and all that were inserted before they began.
TEST(EntryList, IsReadWhileItGrows) {
  constexpr std::uint64_t kEntries = 20'000;
  OwnedList owned;
  std::atomic<std::uint64_t> inserted{0};
  std::vector<std::thread> readers;
  for (std::uint64_t reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      SeededRng rng(reader);
      for (std::uint64_t before = 0; before < kEntries;) {
        before = inserted.load(std::memory_order_acquire);
        std::uint64_t count = 0;
        std::optional<InternalKey> last;
        for (const Node* node = owned.list.first(); node != nullptr; node = node->next(), ++count) {
          const InternalKey key = node->key();
          ASSERT_TRUE(!last || *last < key);
          last = key;
        }
        ASSERT_GE(count, before);
        for (std::uint64_t i = 0; i < 100 && before > 0; ++i) {
          // See the writer: tag t has the key of t.
          const std::uint64_t tag = rng.below(before);
          const std::string key = std::to_string(tag * 7'919 % kEntries);
          const Node* const node = owned.list.find({key, tag});
          ASSERT_NE(node, nullptr);
          ASSERT_EQ(key_of(node), Key(key, tag));
          const Node* const previous = owned.list.find_before({key, tag});
          ASSERT_TRUE(previous == nullptr || previous->key() < node->key());
        }
      }
    });
  }
  for (std::uint64_t tag = 0; tag < kEntries; ++tag) {
    EXPECT_TRUE(owned.insert(std::to_string(tag * 7'919 % kEntries), tag));
    inserted.store(tag + 1, std::memory_order_release);
  }
  for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace divan::kv::embedded
