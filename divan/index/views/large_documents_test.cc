// Documents whose rows take several transactions: queries never see only some of the rows, and an interrupted
// build leaves none.
#include <fmt/core.h>

#include <algorithm>

#include "divan/index/views/check.h"
#include "divan/index/views/large_document.h"
#include "divan/index/views/reduce_nodes_testing.h"
#include "divan/index/views/views_testing.h"
#include "divan/kv/check_testing.h"

namespace divan::index::views {
namespace {

using kv::testing::MapRows;
using ::testing::HasSubstr;

// Values of 100,000 bytes: some twenty fit in a transaction.
testing::ReduceNodesHarness::Rows large_rows(int count, char c) {
  testing::ReduceNodesHarness::Rows rows;
  for (int n = count; n > 0; --n)
    rows.emplace_back(0, std::to_string(n), '"' + std::string(100'000, c) + '"');
  return rows;
}

struct LargeDocuments : ::testing::Test {
  testing::ReduceNodesHarness harness{
      R"({"v":{"map":"f","reduce":"_count"},"w":{"map":"f","reduce":"_count"}})", {}};
  bool ended = false;  // the last write()
  int sequence = 9'000;

  // Writes a document's rows, calling `observe` between the transactions until it returns false; returns the
  // number of transactions.
  int write(const testing::ReduceNodesHarness::Rows& rows, const std::function<bool()>& observe) {
    ViewBatch batch(harness.index->views().size(), harness.index);
    batch.add_document("large");
    for (const auto& [view, key, value] : rows) batch.add_row(0, view, key, value);
    const IndexKeys keys = harness.keys();
    for (int transactions = 1;; ++transactions) {
      ended = batch.prepare(*harness.store, keys, 0, {1}) == 1;
      harness.store->run([&](kv::Transaction& tx) {
        batch.write(tx, keys);
        if (ended) {
          const std::string version = std::string(6, '\0') + std::to_string(++sequence);
          write_sequence(tx, keys, kv::Versionstamp::complete(version));
        }
      });
      if (!observe() || ended) return transactions;
    }
  }
  std::string rows() {
    ViewParams params;
    params.reduce = false;
    std::string shown;
    const std::string result = harness.query("v", params);
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      shown += fmt::format("{} {}{} ", *json::string_value(*json::member(row, "id")),
                           *json::member(row, "key"), (*json::member(row, "value"))[1]);
      return true;
    });
    EXPECT_THAT(result, HasSubstr(fmt::format(R"("total_rows":{},)", std::ranges::count(shown, ' ') / 2)));
    return shown;
  }
  static std::string expected(int count, char c) {
    std::string rows;
    for (int n = 1; n <= count; ++n) rows += fmt::format("large {}{} ", n, c);
    return rows + "small 1000s ";
  }
  std::string reduced() { return harness.query("v", {}); }
  std::uint64_t findings() {
    MapRows::Map map;
    MapRows(*harness.store).scan(harness.keys().all(), [&](std::string_view key, std::string_view value) {
      return map.emplace(key, value).second;
    });
    MapRows index(map);
    kv::Findings found;
    Check check(INT64_MAX, found, [](std::int64_t) { return "db"; });
    EXPECT_EQ(kv::testing::run_checks(index, {&check}), 0u);
    return found.count();
  }
  // What a build does at its beginning and at its end.
  void more_work(bool resume_only) {
    while (harness.build_piece(resume_only)) {}
  }
  void SetUp() override { harness.write({{"small", {{0, "1000", "\"s\""}, {1, "1", "1"}}}}); }
};

TEST_F(LargeDocuments, BecomeVisibleAtOnce) {
  EXPECT_EQ(rows(), "small 1000s ");
  struct Version {
    int count;
    char c;
  };
  for (const Version& version :
       {Version{90, 'a'}, Version{70, 'b'}, Version{1, 'c'}, Version{80, 'd'}, Version{0, 'e'}}) {
    SCOPED_TRACE(version.c);
    const std::string after = expected(version.count, version.c);
    std::vector<std::string> seen;
    const int transactions = write(large_rows(version.count, version.c), [&] {
      EXPECT_EQ(findings(), 0u);
      seen.push_back(rows());
      const auto shown = static_cast<int>(std::ranges::count(seen.back(), ' ') / 2);
      EXPECT_EQ(reduced(), fmt::format(R"({{"rows":[{{"key":null,"value":{}}}]}})", shown));
      return true;
    });
    EXPECT_GE(transactions, version.count > 60 ? 6 : 1);
    EXPECT_EQ(seen.back(), after);
    seen.pop_back();
    for (const auto& one : seen) EXPECT_EQ(one, "small 1000s ");
    more_work(false);
    EXPECT_EQ(harness.state(0).kind, ReduceTreeState::Kind::complete);
    EXPECT_EQ(harness.state(1).kind, ReduceTreeState::Kind::complete);
    EXPECT_EQ(findings(), 0u);
  }
}

TEST_F(LargeDocuments, AnInterruptedOneLeavesNoRows) {
  harness.write({{"large", large_rows(50, 'o')}});
  for (int after = 1;; ++after) {
    SCOPED_TRACE(after);
    int left = after;
    write(large_rows(75, 'n'), [&] { return --left > 0; });
    if (ended) break;
    more_work(true);
    EXPECT_EQ(rows(), "small 1000s ");
    EXPECT_EQ(findings(), 0u);
    // The existing rows are overwritten.
    write(large_rows(50, 'o'), [] { return true; });
    more_work(false);
    EXPECT_EQ(rows(), expected(50, 'o'));
    EXPECT_EQ(reduced(), R"({"rows":[{"key":null,"value":51}]})");
  }
  EXPECT_EQ(rows(), expected(75, 'n'));
}

TEST_F(LargeDocuments, RowsThatAreTooLargeAreCounted) {
  testing::ReduceNodesHarness::Rows few{{0, "1", '"' + std::string(kMaxRowBytes, 'x') + '"'},
                                        {0, "2", "\"2\""}};
  write(few, [] { return true; });
  const auto left_out = [&] {
    return harness.store->run([&](kv::Transaction& tx) { return read_left_out(tx, harness.keys()); });
  };
  EXPECT_EQ(left_out().documents, 1);
  EXPECT_EQ(left_out().rows, 1);
  EXPECT_EQ(left_out().examples.at(0).id, "large");
  EXPECT_EQ(left_out().examples.at(0).left_out.reason, "View `v`: a row takes more than 6000000 bytes.");
  EXPECT_EQ(rows(), "large 22 small 1000s ");
  // A view whose rows are too many has none; the other views have theirs.
  testing::ReduceNodesHarness::Rows many{{1, "1", "1"}};
  for (int n = 0; n < 13; ++n)
    many.emplace_back(0, std::to_string(n), '"' + std::string(5'500'000, 'x') + '"');
  write(many, [] { return true; });
  EXPECT_EQ(left_out().documents, 1);
  EXPECT_EQ(left_out().rows, 13);
  EXPECT_EQ(left_out().examples.at(0).left_out.reason,
            "View `v`: the document's rows take more than 64000000 bytes together.");
  EXPECT_EQ(rows(), "small 1000s ");
  EXPECT_EQ(harness.query("w", {}), R"({"rows":[{"key":null,"value":2}]})");
  EXPECT_EQ(findings(), 0u);
  write(large_rows(70, 'g'), [] { return true; });
  EXPECT_EQ(left_out().documents, 0);
  EXPECT_EQ(left_out().rows, 0);
}

using LargeDocumentBuilds = testing::ViewsFixture;

TEST_F(LargeDocumentBuilds, HaveAllRows) {
  put_design(
      R"({"v":{"map":"function(doc) { for (var i = 0; i < doc.n; i++) emit(i, null); }","reduce":"_count"}})");
  put(R"({"_id":"a","n":2})");
  auto rev = put(R"({"_id":"b","n":80000})");
  put(R"({"_id":"c","n":3})");
  build();
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":80005}]})");
  EXPECT_EQ(query("v", {{"key", "79999"}}), R"({"rows":[{"key":null,"value":1}]})");
  rev = put(R"({"_id":"b","n":100000,"_rev":")" + rev + "\"}");
  put(R"({"_id":"d","n":1})");
  build();
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":100006}]})");
  put(R"({"_id":"b","_deleted":true,"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":6}]})");
  const auto [summary, lists] = store->run([&](kv::Transaction& tx) {
    const IndexKeys keys(catalog.open(tx, "db"), index()->signature());
    const auto rows = tx.get_range(kv::below(keys.part(kDocumentsPart))).rows;
    return std::pair(read_left_out(tx, keys), rows.size());
  });
  EXPECT_EQ(summary.documents, 0);
  EXPECT_EQ(lists, 3u);  // of the other documents
  EXPECT_EQ(queue_state(build_id(store->run([&](kv::Transaction& tx) { return catalog.open(tx, "db"); }),
                                 index()->signature())),
            jobs::State::finished);
}

}  // namespace
}  // namespace divan::index::views
