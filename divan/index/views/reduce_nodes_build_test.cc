// Reduce nodes as builds write them.
#include <fmt/core.h>

#include <algorithm>

#include "divan/index/views/reduce_nodes.h"
#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

using ReduceNodesBuild = testing::ViewsFixture;

// The reduce nodes of many documents are built at the end, those of few with each batch.
TEST_F(ReduceNodesBuild, PartialReductionsAreStoredFromTheFirstBuildOn) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, doc.n); }","reduce":"_sum"}})");
  const auto put_many = [&](int from, int to) {
    std::vector<docs::IncomingDocument> documents;
    for (int i = from; i < to; ++i)
      documents.push_back(docs::parse_document(fmt::format(R"({{"_id":"{}","n":{}}})", i, i)));
    docs::bulk_edit(*store, catalog, "db", documents, rng);
  };
  const auto nodes = [&] {
    return store->run([&](kv::Transaction& tx) {
      const ReduceNodeKeys keys(IndexKeys(catalog.open(tx, "db"), index()->signature()), 0);
      EXPECT_EQ(read_reduce_tree_state(tx, keys).kind, ReduceTreeState::Kind::complete);
      return tx.get_range(keys.all()).rows.size();
    });
  };
  int count = 0;
  for (const int more : {500, 3'000, 100}) {
    put_many(count, count + more);
    count += more;
    build();
    EXPECT_EQ(query("v"), fmt::format(R"({{"rows":[{{"key":null,"value":{}}}]}})", count * (count - 1) / 2));
    EXPECT_GT(nodes(), static_cast<std::size_t>(count) / 64);
  }
}

TEST_F(ReduceNodesBuild, ABuildThatIsInterruptedAmongReduceNodesResumesThere) {
  Kinds piecemeal;
  piecemeal.push_back(std::make_unique<ViewKind>(pool, js::Limits{}, FanOut{.at_once = 100}));
  Builder yielding(*store, catalog, queue, monitor, piecemeal, clock, {.time_slice = Duration(0)});
  put_design(
      R"({"v":{"map":"function(doc) { for (var i = 0; i < 2000; i++) emit(i, i); }","reduce":"_sum"}})");
  put("{}");
  request();
  const auto job = accept().at(0);
  put(R"({"_id":"_design/a","views":{"v":{"map":"function(doc) { emit(2); }"}}})");
  request();  // stays pending
  const auto state = [&] {
    return store->run([&](kv::Transaction& tx) {
      const auto first = find_index(tx, catalog.open(tx, "db"), kinds, "_design/d", signature_of(job));
      return read_reduce_tree_state(tx,
                                    ReduceNodeKeys(IndexKeys(catalog.open(tx, "db"), first->signature()), 0));
    });
  };
  yielding.run(job);
  EXPECT_EQ(state().kind, ReduceTreeState::Kind::none);
  std::vector<std::string> positions;
  for (int attempts = 0; state().kind != ReduceTreeState::Kind::complete && attempts < 100; ++attempts) {
    std::vector<jobs::AcceptedJob> mine = accept(2);
    std::erase_if(mine, [&](const jobs::AcceptedJob& one) {
      if (one.job.id == job.job.id) return false;
      store->run([&](kv::Transaction& tx) { jobs::release(queue, tx, one.attempt()); });
      return true;
    });
    for (const auto& again : mine) {
      yielding.run(again);
      positions.push_back(state().position);
    }
  }
  // Every attempt continued with another piece.
  ASSERT_GT(positions.size(), 10u);
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.begin() + 10));
  EXPECT_EQ(std::adjacent_find(positions.begin(), positions.begin() + 10), positions.begin() + 10);
  EXPECT_EQ(state().kind, ReduceTreeState::Kind::complete);
}

}  // namespace
}  // namespace divan::index::views
