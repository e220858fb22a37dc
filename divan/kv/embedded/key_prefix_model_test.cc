// Filters may only ever hide what is not there. A long random life of a store whose keys are as hostile to
// prefixes as keys can be, against a plain map: rows in memory, in new files, in compacted files, and in
// files that were written without our prefixes or with somebody else's.
#include <gtest/gtest.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <map>
#include <set>

#include "divan/kv/embedded/key_prefix.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

using ModelRows = std::map<std::string, std::string>;

// Bytes that mean something to the encoding: ends, escapes, the codes of strings and integers.
std::string hostile_bytes(Rng& rng, std::size_t longest) {
  static constexpr std::string_view kBytes("\0\xff\0\xff\x02\x01\x14\x15\x13\x0c\x1c\x1d\x61\x62\xfe", 15);
  std::string out;
  for (auto n = rng.below(longest + 1); n > 0; --n) out += kBytes[rng.below(kBytes.size())];
  return out;
}

void add_element(std::string& key, Rng& rng) {
  tuple::Packer packer(key);
  switch (rng.below(8)) {
    case 0: packer.bytes(hostile_bytes(rng, 3)); break;
    case 1: packer.integer(static_cast<std::int64_t>(rng.below(4)) - 1); break;
    case 2: packer.integer(static_cast<std::int64_t>(rng.next() >> rng.below(64))); break;
    case 3: packer.integer(-static_cast<std::int64_t>(rng.below(1 << 20))); break;
    case 4: packer.boolean(rng.below(2) == 0); break;
    case 5: packer.null(); break;
    default: packer.string(hostile_bytes(rng, 3)); break;
  }
}

// Rows of docs/keyspace.md: of few databases, documents and jobs, so that beginnings are shared.
std::string usual_key(Rng& rng) {
  std::string key;
  tuple::Packer packer(key);
  if (rng.below(3) == 0) {
    static constexpr const char* kParts[] = {"job", "data", "pend", "by_worker"};
    packer.string("jobs").string(kParts[rng.below(4)]).string(hostile_bytes(rng, 1));
  } else {
    packer.string("db").integer(rng.below(3) * 200).integer(rng.below(8));
  }
  packer.string(hostile_bytes(rng, 2));
  for (auto n = rng.below(3); n > 0; --n) add_element(key, rng);
  return key;
}

std::string hostile_key(Rng& rng) {
  std::string key;
  switch (rng.below(6)) {
    case 0: key = hostile_bytes(rng, 12); break;
    case 1:
      for (auto n = rng.below(6); n > 0; --n) add_element(key, rng);
      break;
    default: key = usual_key(rng); break;
  }
  if (rng.below(4) == 0) key.resize(rng.below(key.size() + 1));
  if (rng.below(4) == 0) key += hostile_bytes(rng, 3);
  if (!key.empty() && key.front() == '\xff') key.front() = '\xfe';
  return key;
}

// Another rule under another name: what a later version of ours might be, or an earlier one.
class FirstBytes final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "divan.filter.0"; }
  bool InDomain(const rocksdb::Slice& key) const override { return key.size() >= 4; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override { return {key.data(), 4}; }
};

/// A store, the map that it must equal, and keys that were or might be in it.
class Life {
 public:
  explicit Life(std::uint64_t seed) : rng_(seed) {
    for (int i = 0; i < 600; ++i) keys_.push_back(hostile_key(rng_));
    open();
  }

  void go_on() {
    write();
    check();
    switch (rng_.below(8)) {
      case 0: open(); break;
      case 1: rewrite(filter_prefixes()); break;
      case 2: rewrite(nullptr); break;
      case 3: rewrite(std::make_shared<FirstBytes>()); break;
      default: return;
    }
    check();
  }

 private:
  const std::string& key() { return keys_[rng_.below(keys_.size())]; }

  // A bound of a range: a key, or what modules make of keys to bound a range.
  std::string bound() {
    std::string bound = key();
    switch (rng_.below(6)) {
      case 0: bound += '\xff'; break;
      case 1: bound += '\0'; break;
      case 2: bound = std::string(filter_prefix(bound)); break;
      case 3: bound = std::string(filter_prefix(bound)) + (rng_.below(2) == 0 ? "\xff" : "\xfe"); break;
      default: break;
    }
    return std::min(bound, std::string("\xff"));
  }

  std::pair<std::string, std::string> range() {
    auto a = bound(), b = bound();
    // Most random pairs are far apart: bring the rows of one thing together, too.
    if (rng_.below(2) == 0) b = std::min(a + hostile_bytes(rng_, 3), std::string("\xff"));
    return std::minmax(a, b);
  }

  void open() {
    database_.reset();
    database_ = std::make_unique<EmbeddedDatabase>(Options{.directory = directory_.path() + "/store",
                                                           .durable = false,
                                                           .cache_bytes = 8 << 20,
                                                           .least_passed = 1},
                                                   clock_, rng_);
  }

  // All files anew, with filters for the beginnings that `prefixes` makes.
  void rewrite(std::shared_ptr<const rocksdb::SliceTransform> prefixes) {
    database_.reset();
    rocksdb::Options options;
    options.prefix_extractor = std::move(prefixes);
    options.disable_auto_compactions = true;
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.block_size = rng_.below(2) == 0 ? 64 : 4096;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_.path() + "/store", &db).ok());
    const std::unique_ptr<rocksdb::DB> owned(db);
    if (rng_.below(2) == 0) {
      rocksdb::CompactRangeOptions compact;
      compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
      ASSERT_TRUE(db->CompactRange(compact, nullptr, nullptr).ok());
    }
    ASSERT_TRUE(db->Close().ok());
    open();
  }

  void write(Transaction& tx, ModelRows& model) {
    for (auto n = rng_.below(40); n > 0; --n) {
      switch (rng_.below(12)) {
        case 0: {
          const auto& k = key();
          tx.clear(k), model.erase(k);
          break;
        }
        case 1: {
          const auto [a, b] = range();
          // Seldom much at once, or there is never anything there.
          const auto from = model.lower_bound(a), to = model.lower_bound(b);
          if (a == "\xff" || (std::distance(from, to) > 8 && rng_.below(20) != 0)) break;
          tx.clear_range(a, b), model.erase(from, to);
          break;
        }
        case 2: {
          // Enough of one thing for a deletion of the whole range.
          if (rng_.below(8) != 0) break;
          const std::string thing = key();
          for (int i = 0; i < 80; ++i) {
            std::string k = thing;
            tuple::Packer(k).integer(i);
            tx.set(k, model[k] = std::to_string(i));
          }
          if (rng_.below(2) == 0) break;
          tx.clear_range(thing, thing + '\x16');
          model.erase(model.lower_bound(thing), model.lower_bound(thing + '\x16'));
          break;
        }
        default: {
          const auto& k = key();
          tx.set(k, model[k] = std::to_string(rng_.below(1000)));
        }
      }
    }
  }

  void write() {
    ModelRows after;
    database_->run([&](Transaction& tx) {
      after = model_;
      write(tx, after);
    });
    model_ = std::move(after);
  }

  // Of what is stored alone, and with writes of its own that nobody will see laid over it.
  void check() {
    check(*database_->begin(), model_);
    const auto tx = database_->begin();
    ModelRows own = model_;
    write(*tx, own);
    check(*tx, own);
  }

  void check(Transaction& tx, const ModelRows& model) {
    const auto many = tx.get_many(keys_);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const auto at = model.find(keys_[i]);
      const auto wanted = at == model.end() ? std::nullopt : std::optional(at->second);
      ASSERT_EQ(many[i], wanted) << testing::PrintToString(keys_[i]);
      ASSERT_EQ(tx.get(keys_[i]), wanted) << testing::PrintToString(keys_[i]);
    }
    for (int i = 0; i < 300; ++i) {
      const auto [begin, end] = range();
      check_range(tx, model, begin, end);
    }
    check_range(tx, model, "", "\xff");
  }

  void check_range(Transaction& tx, const ModelRows& model, const std::string& begin,
                   const std::string& end) {
    for (const bool reverse : {false, true}) {
      std::vector<std::pair<std::string, std::string>> wanted(model.lower_bound(begin),
                                                              model.lower_bound(end));
      if (reverse) std::reverse(wanted.begin(), wanted.end());
      const std::size_t limit = rng_.below(3) == 0 ? 1 + rng_.below(4) : 0;
      if (limit != 0 && wanted.size() > limit) wanted.resize(limit);
      std::vector<std::pair<std::string, std::string>> found;
      for (auto& row : tx.get_range(KeyRange{begin, end}, {.limit = limit, .reverse = reverse}).rows) {
        found.emplace_back(row.key, row.value);
      }
      shared_ += share_filter_prefix(begin, end) && !wanted.empty() ? 1 : 0;
      ASSERT_EQ(found, wanted) << testing::PrintToString(begin) << " to " << testing::PrintToString(end);
    }
  }

 public:
  // How often a range with rows was read with the help of a filter.
  int shared_ = 0;

 private:
  SeededRng rng_;
  TemporaryDirectory directory_;
  SystemClock clock_;
  std::vector<std::string> keys_;
  ModelRows model_;
  std::unique_ptr<EmbeddedDatabase> database_;
};

TEST(KeyPrefix, NoReadOfALongLifeMissesARow) {
  const char* const named = std::getenv("DIVAN_TEST_SEED");
  const std::uint64_t seed = named != nullptr ? std::strtoull(named, nullptr, 10) : SystemRng().next();
  SCOPED_TRACE("DIVAN_TEST_SEED=" + std::to_string(seed));
  Life life(seed);
  for (int i = 0; i < 30 && !testing::Test::HasFatalFailure(); ++i) life.go_on();
  EXPECT_GT(life.shared_, 100);
}

}  // namespace
}  // namespace divan::kv::embedded
