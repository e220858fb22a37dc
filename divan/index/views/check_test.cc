#include "divan/index/views/check.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/collation/collation.h"
#include "divan/docs/catalog.h"
#include "divan/index/views/reduce_nodes_testing.h"
#include "divan/index/views/row_lists.h"
#include "divan/index/views/view_batch.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple.h"

namespace divan::index::views {
namespace {

using namespace std::string_view_literals;
using kv::testing::MapRows;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct ViewsCheck : ::testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  docs::Catalog catalog{bus, clock};

  void SetUp() override {
    for (const std::int64_t number : {1, 2}) {
      const docs::Database database(catalog, "db", number, 0);
      for (const char signature : {'a', 'b'}) {
        const IndexKeys keys(database, std::string(16, signature));
        ViewBatch batch(2);
        for (std::size_t i = 0; i < 3; ++i) {
          batch.add_document(fmt::format("doc{}", i));
          batch.add_row(i, 0, "1", "null");
          batch.add_row(i, 0, "1", "2");
          batch.add_row(i, 1, R"("long")", '"' + std::string(200'000, 'x') + '"');
        }
        batch.add_row(0, 0, '"' + std::string(6'000, 'k') + '"', "null");
        batch.add_failure(1, "it failed");
        if (number == 1 && signature == 'a') {
          // Its list of rows takes several chunks.
          batch.add_document("many");
          for (int n = 0; n < 12'000; ++n) batch.add_row(3, 1, std::to_string(n), "1");
        }
        for (std::size_t done = 0; done < batch.documents();) {
          done = batch.prepare(*store, keys, done, {});
          store->run([&](kv::Transaction& tx) { batch.write(tx, keys); });
        }
        store->run([&](kv::Transaction& tx) { write_sequence(tx, keys, {}); });
      }
    }
  }
  static kv::Findings check(MapRows& rows, kv::Version version = INT64_MAX) {
    kv::Findings findings;
    Check check(version, findings, [](std::int64_t number) {
      return number == 1 ? std::optional<std::string>("db") : std::nullopt;
    });
    EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 0u);
    return findings;
  }
};

TEST_F(ViewsCheck, UndamagedIndexesHaveNoFindings) {
  MapRows rows(*store);
  EXPECT_THAT(check(rows).kept(), ElementsAre());
}

TEST_F(ViewsCheck, ARecordOfANumberBeyondAnIntIsNotTakenForAnother) {
  MapRows rows(*store);
  const IndexKeys keys(docs::Database(catalog, "db", 1, 0), std::string(16, 'a'));
  const std::string counter = keys.record(IndexKeys::Record::left_out_documents);
  std::string key = keys.state();
  kv::tuple::Packer(key).integer((std::int64_t{1} << 32) +
                                 static_cast<int>(IndexKeys::Record::left_out_documents));
  rows.map()[key] = rows.map().at(counter);
  EXPECT_THAT(check(rows).kept(), ElementsAre(HasSubstr("unknown record of an index")));
}

TEST_F(ViewsCheck, MissingAndDamagedRowsAreFound) {
  MapRows rows(*store);
  const docs::Database database(catalog, "db", 1, 0);
  const IndexKeys keys(database, std::string(16, 'a'));
  // Only this index, to be fast.
  MapRows::Map map;
  rows.scan(keys.all(),
            [&](std::string_view key, std::string_view value) { return map.emplace(key, value).second; });
  MapRows index(map);
  ASSERT_EQ(check(index).count(), 0u);
  std::size_t position = 0, tried = 0;
  for (const auto& [key, value] : map) {
    if (++position % 1000 > 6 && key < keys.part(2)) continue;
    ++tried;
    index.map().erase(key);
    EXPECT_GT(check(index).count(), 0u) << kv::tuple::describe(key);
    index.map()[key] = value;
    index.map()[key + "\x02x"] = value;
    EXPECT_GT(check(index).count(), 0u) << kv::tuple::describe(key);
    index.map().erase(key + "\x02x");
  }
  EXPECT_GT(tried, 80u);
  std::string counter = keys.part(3);
  kv::tuple::Packer(counter).integer(0);
  index.map()[counter] = std::string("\x05\0\0\0\0\0\0\0", 8);
  EXPECT_THAT(check(index).kept(),
              ElementsAre(HasSubstr("the row counter of view 0 is 5, but the view has 7 rows")));
}

TEST_F(ViewsCheck, KeysOfRowsAndListsThatNameTooMuchAreDamaged) {
  const docs::Database database(catalog, "db", 1, 0);
  const IndexKeys keys(database, std::string(16, 'a'));
  const auto found = [&](const std::string& key, const std::string& value) {
    MapRows index(MapRows::Map{{key, value}});
    return check(index).kept();
  };
  // Too short for a number and a chunk after the view, whatever precedes them.
  for (const std::string_view rest : {"\x1c\1\1\1\1\1\1\0\0"sv, "\x18\1\1\1\0\0"sv, "\x14\0\0\0\0\0"sv}) {
    EXPECT_THAT(found(keys.part(kRowsPart) + std::string(rest), "x"), Contains(HasSubstr("is damaged")));
  }
  // View 0, key "", number 0; and the chunks of all the document's rows together exceed the limit for emitted
  // bytes.
  const auto list = [](std::uint64_t chunks, int rows) {
    std::string one("\0\0\0", 3), all;
    append_varint(one, chunks);
    for (; rows > 0; --rows) all += one;
    return all;
  };
  const std::string key = list_key(keys, "doc");
  EXPECT_THAT(found(key, list(668, 1)), Not(Contains(HasSubstr("is damaged"))));
  EXPECT_THAT(found(key, list(24, 29)), Not(Contains(HasSubstr("is damaged"))));
  for (const auto& value :
       {list(0, 1), list(669, 1), list(24, 30), list(UINT64_MAX, 1), list(1 << 16, 10'000)}) {
    EXPECT_THAT(found(key, value), Contains(HasSubstr("is damaged")));
  }
}

// Damage that does not move any row.
TEST_F(ViewsCheck, ValuesOfRowsAreWholeAndJson) {
  const docs::Database database(catalog, "db", 1, 0);
  const IndexKeys keys(database, std::string(16, 'b'));
  MapRows rows(*store);
  MapRows::Map map;
  rows.scan(keys.all(),
            [&](std::string_view key, std::string_view value) { return map.emplace(key, value).second; });
  MapRows index(map);
  ASSERT_EQ(check(index).count(), 0u);
  std::size_t tried = 0;
  for (const auto& [key, value] : map) {
    if (key < keys.part(1) || key > keys.part(2)) continue;
    ++tried;
    for (const auto& changed :
         {value.substr(0, value.size() - 1), value + '1', value.substr(0, value.size() - 1) + '"',
          '\xff' + value.substr(1), std::string()}) {
      if (changed == value) continue;
      index.map()[key] = changed;
      EXPECT_GT(check(index).count(), 0u) << kv::tuple::describe(key) << changed.size();
    }
    index.map()[key] = value;
  }
  EXPECT_EQ(tried, 16u);
  index.map()[row_key_begin(keys, 0, collation::encode_key("1"), "doc0") + std::string(6, '\0')] += 'x';
  EXPECT_THAT(check(index).kept(),
              ElementsAre(::testing::AllOf(::testing::StartsWith("Database db, index 6262"),
                                           HasSubstr("is damaged"))));
  index.map() = map;
  index.map().erase(keys.state());
  EXPECT_THAT(check(index).kept(), ElementsAre(HasSubstr("it has rows, but no sequence")));
}

TEST_F(ViewsCheck, ADamagedListDoesNotHideTheNextRow) {
  const IndexKeys keys(docs::Database(catalog, "db", 1, 0), std::string(16, 'b'));
  MapRows rows(*store);
  // The last list: the next row is a counter. And the state of the next index, after a list without counters.
  rows.map().at(list_key(keys, "doc2")) = "x";
  EXPECT_THAT(
      check(rows).kept(),
      ElementsAre(::testing::AllOf(HasSubstr("index 6262"), HasSubstr("is damaged"), HasSubstr("doc2")),
                  ::testing::AllOf(HasSubstr("index 6262"), HasSubstr("lists do not match"))));
  const IndexKeys before(docs::Database(catalog, "db", 1, 0), std::string(16, 'a'));
  rows.map() = {{list_key(before, "doc"), "x"}, {keys.state(), rows.map().at(keys.state())}};
  EXPECT_THAT(check(rows).kept(),
              ::testing::Contains(::testing::AllOf(HasSubstr("index 6161"), HasSubstr("is damaged"))));
  EXPECT_THAT(check(rows).kept(), Not(Contains(HasSubstr("index 6262"))));
}

TEST_F(ViewsCheck, ReduceNodesMatchTheBoundariesOfTheRows) {
  testing::ReduceNodesHarness harness(R"({"v":{"map":"f","reduce":"_count"},"w":{"map":"f"}})", {});
  std::map<std::string, testing::ReduceNodesHarness::Rows> documents;
  for (int i = 0; i < 1000; ++i) documents[std::to_string(i)] = {{0, std::to_string(i), "1"}, {1, "1", "1"}};
  harness.write(documents);
  const ReduceNodeKeys node_keys(harness.keys(), 0);
  MapRows::Map map;
  MapRows(*harness.store).scan(harness.keys().all(), [&](std::string_view key, std::string_view value) {
    return map.emplace(key, value).second;
  });
  MapRows index(map);
  const auto check_it = [&] {
    kv::Findings findings;
    Check check(INT64_MAX, findings, [](std::int64_t) { return "db"; });
    EXPECT_EQ(kv::testing::run_checks(index, {&check}), 0u);
    return findings;
  };
  ASSERT_THAT(check_it().kept(), ElementsAre());
  std::size_t tried = 0;
  for (const auto& [key, value] : map) {
    if (key <= node_keys.state() || key >= node_keys.all().end) continue;
    ++tried;
    index.map().erase(key);
    EXPECT_THAT(check_it().kept(), ElementsAre(HasSubstr("boundaries of its rows do not match")));
    index.map()[key] = "\x01{";
    EXPECT_GT(check_it().count(), 0u);
    index.map()[key] = value;
  }
  EXPECT_GT(tried, 10u);
  index.map()[node_keys.node(1, "x")] =
      "\x01"
      "1";
  EXPECT_THAT(check_it().kept(), ElementsAre(HasSubstr("boundaries of its rows do not match")));
  // Unless they are marked complete, there may be any reduce nodes.
  index.map().erase(node_keys.state());
  EXPECT_EQ(check_it().count(), 0u);
  index.map()[node_keys.state()] = "x";
  EXPECT_GT(check_it().count(), 0u);
}

TEST_F(ViewsCheck, AnIndexSequenceBeyondTheStoresVersionIsFound) {
  const docs::Database database(catalog, "db", 1, 0);
  const IndexKeys keys(database, std::string(16, 'a'));
  store->run([&](kv::Transaction& tx) {
    write_sequence(tx, keys, kv::Versionstamp::complete(std::string("\0\0\0\0\0\0\x03\xe9\0\0", 10)));
  });
  MapRows rows(*store);
  EXPECT_EQ(check(rows, 1001).count(), 0u);
  EXPECT_THAT(check(rows, 1000).kept(), ElementsAre(HasSubstr("greater than the store's version 1000")));
}

TEST_F(ViewsCheck, IndexesOfMissingDatabasesAreIgnored) {
  const docs::Database database(catalog, "db", 2, 0);
  MapRows rows(*store);
  rows.map().erase(rows.map().lower_bound(IndexKeys(database, std::string(16, 'a')).part(1)));
  EXPECT_EQ(check(rows).count(), 0u);
}

}  // namespace
}  // namespace divan::index::views
