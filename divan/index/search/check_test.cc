#include "divan/index/search/check.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/docs/catalog.h"
#include "divan/index/search/merger.h"
#include "divan/index/search/search_batch.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple.h"

namespace divan::index::search {
namespace {

using kv::testing::MapRows;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct SearchCheckTest : ::testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  docs::Catalog catalog{bus, clock};
  docs::Database database{catalog, "db", 1, 0};
  IndexKeys keys{database, std::string(16, 's')};

  // Several segments, some of which are merged, with documents that were replaced and deleted.
  void SetUp() override {
    for (int round = 0; round < 25; ++round) {
      SearchBatch batch(text::make_analyzer("\"whitespace\""));
      const bool has_fields = round != 24;
      batch.add_document(fmt::format("d{}", round % 10));
      const std::vector<Field> fields{
          {.name = "text", .json = fmt::format(R"("a b{} a c")", round), .is_stored = round % 2 == 0},
          {.name = "n", .json = std::to_string(round)},
          {.name = "big",
           .json = '"' + std::string(round == 20 ? 120'000 : 1, ' ') + '"',
           .is_stored = true}};
      if (has_fields) {
        for (const auto& field : fields) batch.add_field(0, field);
        batch.end_fields(0);
      }
      write(batch);
      while (const auto work = merge_piece(*store, keys))
        store->run([&](kv::Transaction& tx) { work->write(tx, keys); });
    }
  }
  void write(SearchBatch& batch) {
    while (batch.prepare(*store, keys, 0, {}) == 0)
      store->run([&](kv::Transaction& tx) { batch.write(tx, keys); });
    store->run([&](kv::Transaction& tx) { batch.write(tx, keys); });
  }
  static kv::Findings check(MapRows& rows) {
    kv::Findings findings;
    Check check(findings, [](std::int64_t) { return "db"; });
    EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 0u);
    return findings;
  }
};

TEST_F(SearchCheckTest, AnUndamagedIndexHasNoFindings) {
  MapRows rows(*store);
  EXPECT_THAT(check(rows).kept(), ElementsAre());
  EXPECT_GT(rows.map().size(), 60u);
}

// Rows of entries to sort and count by, which nothing else tells of; and those of documents that were
// replaced, until they are merged.
bool may_be_missing(kv::Database& store, const IndexKeys& index_keys, std::string_view key) {
  const SearchKeys keys(index_keys);
  const auto entries = keys.part(Part::entries);
  if (!key.starts_with(entries)) return false;
  kv::tuple::Reader reader(key.substr(entries.size()));
  reader.take_int();
  const auto row = parse_row_key(reader.rest());
  if (reader.take_int() != static_cast<int>(Column::terms)) return true;
  const auto tx = store.begin();
  LiveDocuments live(*tx, keys);
  const auto value = tx->get(key);
  EntryReader reader_of_entries(Column::terms, row.first, *value);
  for (Entry entry; reader_of_entries.next(entry);) {
    if (live.contains(entry.number)) return false;
  }
  return true;
}

TEST_F(SearchCheckTest, EachMissingRowIsFound) {
  for (const auto& key : kv::testing::unmissed_rows(*store, check))
    EXPECT_TRUE(may_be_missing(*store, keys, key)) << kv::tuple::describe(key);
}

TEST_F(SearchCheckTest, DamagedRowsAreFound) {
  MapRows rows(*store);
  const auto whole = rows.map();
  for (const auto& [key, value] : whole) {
    if (may_be_missing(*store, keys, key)) continue;
    rows.map()[key] = value.substr(0, value.size() / 2);
    EXPECT_NE(check(rows).count(), 0u) << kv::tuple::describe(key);
    rows.map()[key] = value;
  }
  rows.map().at(SearchKeys(keys).number("d3")) = encode_number(999);
  EXPECT_THAT(check(rows).kept(), Contains(HasSubstr("documents with an id do not match")));
}

}  // namespace
}  // namespace divan::index::search
