// Whatever changes documents undergo, and wherever builds are interrupted: an index is equal, byte for byte,
// to one that is built from scratch, except that it may have additional counters with the value 0.
#include <rapidcheck.h>

#include "divan/index/views/views_testing.h"
#include "divan/jobs/listing.h"
#include "divan/kv/tiring_testing.h"

namespace divan::index::views {
namespace {

struct InterruptedBuild : testing::ViewsFixture {
  kv::testing::TiringStore tiring{*store};
  std::map<std::string, std::string> revisions;  // of the documents that are not deleted

  // A process that can make `commits` more commits runs the build, and crashes. Its job is then removed, as
  // if another process had reclaimed it.
  void build_interrupted(int commits) {
    request();
    const testing::PassingClock passing;
    Builder doomed(tiring, catalog, queue, monitor, kinds, passing, BuilderOptions{.batch_documents = 5});
    const auto jobs = accept();
    tiring.commits_left = commits;
    for (const auto& job : jobs) doomed.run(job);
    tiring.commits_left = INT_MAX;
    store->run([&](kv::Transaction& tx) {
      for (const auto& job : list_jobs(queue, tx, "views", {.limit = 10}).jobs)
        queue.remove(tx, "views", job.id);
    });
  }

  void change_document() {
    const std::string id = std::to_string(*rc::gen::inRange(0, 40));
    const auto there = revisions.find(id);
    std::string json = R"({"_id":")" + id + '"';
    if (there != revisions.end()) json += R"(,"_rev":")" + there->second + '"';
    if (there != revisions.end() && *rc::gen::inRange(0, 4) == 0) {
      put(json + R"(,"_deleted":true})");
      revisions.erase(there);
      return;
    }
    const auto keys =
        *rc::gen::container<std::vector<int>>(*rc::gen::element(0, 1, 1, 6), rc::gen::inRange(0, 9));
    json += R"(,"keys":[)";
    for (std::size_t i = 0; i < keys.size(); ++i) json += (i > 0 ? "," : "") + std::to_string(keys[i]);
    revisions[id] = put(json + "]}");
  }

  std::vector<std::pair<std::string, std::string>> rows() {
    return store->run([&](kv::Transaction& tx) {
      std::vector<std::pair<std::string, std::string>> all;
      const IndexKeys keys(catalog.open(tx, "db"), index()->signature());
      const auto counters = kv::below(keys.part(kCountsPart));
      const std::string nothing(8, '\0');
      for (auto& row : tx.get_range(keys.all()).rows)
        if (!counters.contains(row.key) || row.value != nothing)
          all.emplace_back(std::move(row.key), std::move(row.value));
      return all;
    });
  }

  void forget_rows() {
    store->run([&](kv::Transaction& tx) {
      tx.clear_range(IndexKeys(catalog.open(tx, "db"), index()->signature()).all());
    });
  }
};

TEST_F(InterruptedBuild, TheIndexEqualsOneBuiltFromScratch) {
  kinds.clear();
  kinds.push_back(
      std::make_unique<ViewKind>(pool, js::Limits{}, FanOut{.row_bits = 1, .node_bits = 1, .at_once = 7}));
  const bool held = rc::check([&] {
    store->run([&](kv::Transaction& tx) {
      catalog.remove(tx, "db");
      catalog.create(tx, "db");
    });
    revisions.clear();
    put_design(
        R"({"a":{"map":"function(doc) { doc.keys.forEach(function(k) { emit(k, 1); }); }","reduce":"_sum"},)"
        R"("b":{"map":"function(doc) { emit([doc.keys.length, doc._id], doc.keys); }","reduce":"function(keys, values, re) { return re ? sum(values) : values.length; }"},)"
        R"("c":{"map":"function(doc) { if (doc.keys.length) emit(doc.keys[0]); }"}})");
    const int rounds = *rc::gen::inRange(1, 5);
    for (int round = 0; round < rounds; ++round) {
      for (int changes = *rc::gen::element(1, 4, 40); changes > 0; --changes) change_document();
      build_interrupted(*rc::gen::element(0, 1, 2, 3, 5, 1000));
    }
    build();
    const auto found = rows();
    RC_ASSERT(json::parse(query("b", {{"reduce", "false"}})).at("total_rows").as_int64() ==
              static_cast<std::int64_t>(revisions.size()));
    forget_rows();
    build();
    RC_ASSERT(found == rows());
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace divan::index::views
