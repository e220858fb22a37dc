// Queries of several pages, between which the data changes; and which rows they read.
#include <fmt/core.h>

#include "divan/index/views/views_testing.h"
#include "divan/kv/counting_testing.h"

namespace divan::index::views {
namespace {

using ::testing::HasSubstr;

struct ViewQuery : testing::ViewsFixture {
  kv::testing::CountingStore counting{*store};

  ViewParams grouped(std::optional<std::uint64_t> limit = {}) {
    ViewParams params;
    params.group = true;
    params.limit = limit;
    return params;
  }
  // A document with a row for each number below `rows`.
  void emit_numbers(int rows, std::string_view reduce) {
    put_design(fmt::format(
        R"({{"v":{{"map":"function(doc) {{ for (var i = 0; i < doc.rows; ++i) emit(i, 1); }}","reduce":{}}}}})",
        json::quoted(reduce)));
    put(fmt::format(R"({{"_id":"numbers","rows":{}}})", rows));
    build();
  }
  std::string ask(const ViewParams& params) {
    const auto index = this->index();
    Query query(counting, catalog, "db", index, *index->find("v"), params);
    std::string out;
    while (query.next(out)) {}
    return json::compact(out);
  }
  void remove_index() {
    store->run([&](kv::Transaction& tx) {
      tx.clear_range(IndexKeys(catalog.open(tx, "db"), index()->signature()).all());
    });
  }
  kv::Versionstamp sequence() {
    return store->run([&](kv::Transaction& tx) {
      return read_sequence(tx, IndexKeys(catalog.open(tx, "db"), index()->signature()));
    });
  }
};

TEST_F(ViewQuery, FailsIfTheDatabaseIsReplaced) {
  emit_numbers(3000, "_sum");
  const auto index = this->index();
  Query query(*store, catalog, "db", index, *index->find("v"), grouped());
  std::string out;
  EXPECT_TRUE(query.next(out));
  store->run([&](kv::Transaction& tx) {
    catalog.remove(tx, "db");
    catalog.create(tx, "db");
  });
  EXPECT_THROW(query.next(out), Error);
}

TEST_F(ViewQuery, FailsIfTheIndexIsRemovedEvenIfItIsBegunAgain) {
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    emit_numbers(3000, "_sum");
    const auto index = this->index();
    Query query(*store, catalog, "db", index, *index->find("v"), grouped());
    std::string out;
    EXPECT_TRUE(query.next(out));
    remove_index();
    if (again) {
      store->run([&](kv::Transaction& tx) {
        // As far as a build from scratch gets first.
        const auto early = kv::Versionstamp::complete(std::string(9, '\0') + '\x01');
        write_sequence(tx, IndexKeys(catalog.open(tx, "db"), index->signature()), early);
      });
    }
    EXPECT_EQ(error_of([&] { query.next(out); }), "not_found: The index was removed.");
    store->run([&](kv::Transaction& tx) {
      catalog.remove(tx, "db");
      catalog.create(tx, "db");
    });
  }
}

TEST_F(ViewQuery, FailsIfTheIndexIsRemovedBeforeTheFirstPage) {
  emit_numbers(3, "_sum");
  const auto index = this->index();
  const auto seen = sequence();
  remove_index();
  Query query(*store, catalog, "db", index, *index->find("v"), {}, seen);
  std::string out;
  EXPECT_THROW(query.next(out), Error);
}

TEST_F(ViewQuery, ALimitOfGroupsLimitsReadsAndReductions) {
  emit_numbers(5000, "function(k, v) { if (k[0][0] > 2) throw 'beyond'; return k[0][0]; }");
  counting.rows_read = 0;
  EXPECT_THAT(ask(grouped(3)), HasSubstr(R"([{"key":0,"value":0},{"key":1,"value":1},{"key":2,"value":2}])"));
  EXPECT_LT(counting.rows_read, 300);
  auto params = grouped(2);
  params.skip = 1;
  EXPECT_THAT(ask(params), HasSubstr(R"([{"key":1,"value":1},{"key":2,"value":2}])"));
  // Skipped groups are reduced, as in CouchDB; groups beyond the limit are not.
  params.descending = true;
  EXPECT_THAT(ask(params), HasSubstr(R"([{"key":4998,"value":null},{"key":4997,"value":null}])"));
  params.start_key = "3";
  EXPECT_THAT(ask(params), HasSubstr(R"([{"key":2,"value":2},{"key":1,"value":1}])"));
  params = grouped(2);
  params.keys = {"0", "2", "7"};
  EXPECT_THAT(ask(params), HasSubstr(R"([{"key":0,"value":0},{"key":2,"value":2}])"));
}

TEST_F(ViewQuery, GroupsThatSpanPagesAreComplete) {
  emit_numbers(2500, "_sum");
  for (const bool descending : {false, true}) {
    auto params = grouped();
    params.descending = descending;
    params.skip = 999;
    const auto rows = json::parse(ask(params)).at("rows").as_array();
    ASSERT_EQ(rows.size(), 1501u);
    for (int i = 0; i < 1501; ++i) {
      const auto& row = rows[static_cast<std::size_t>(i)];
      EXPECT_EQ(row.at("key").as_int64(), descending ? 1500 - i : 999 + i);
      EXPECT_EQ(row.at("value").as_int64(), 1);
    }
  }
}

// More in total than one call of the sandbox may return.
TEST_F(ViewQuery, ManyLargeReductionsAreReducedPageByPage) {
  auto limit = js::PoolOptions{.binary = DIVAN_JS_BINARY, .processes = 2};
  limit.reduce_limit.mode = js::ReduceLimit::Mode::off;
  pool.configure(limit);
  emit_numbers(2600, "function() { return new Array(30001).join('x'); }");
  EXPECT_GT(ask(grouped()).size(), std::size_t{70} << 20);
}

}  // namespace
}  // namespace divan::index::views
