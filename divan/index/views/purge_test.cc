// Views follow purges.
#include <fmt/core.h>

#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/index/purged_documents.h"
#include "divan/index/views/views_testing.h"

namespace divan::index::views {
namespace {

struct PurgedRows : testing::ViewsFixture {
  docs::Database open() {
    return store->run([&](kv::Transaction& tx) { return catalog.open(tx, "db"); });
  }
  void purge(const std::string& id) {
    docs::PurgeRequest request{id, {}};
    for (const auto& leaf : tree(id)) request.revisions.push_back(leaf.revision());
    EXPECT_THAT(docs::purge(*store, open(), {&request, 1}).front(), ::testing::Not(::testing::IsEmpty()))
        << id;
  }
  docs::RevTree tree(const std::string& id) {
    return store->run([&](kv::Transaction& tx) { return docs::read_tree(tx, catalog.open(tx, "db"), id); });
  }
  void number(const std::string& id, int n) { put(fmt::format(R"({{"_id":"{}","n":{}}})", id, n)); }

  // The ids of the view's rows, and their sum.
  std::string rows() {
    EXPECT_THAT(findings(), ::testing::IsEmpty());
    return ids_and_values(query("v", {{"reduce", "false"}}), query("v"));
  }
  std::size_t purged_documents() {
    return store->run([&](kv::Transaction& tx) {
      return tx.get_range(kv::below(open().keys().purges(docs::PurgeRow::document))).rows.size();
    });
  }
  void remove_passed() {
    store->run([&](kv::Transaction& tx) { remove_purged_documents(tx, catalog.open(tx, "db")); });
  }
};

constexpr const char* kSum =
    R"({"v":{"map":"function(doc) { if (doc.n) emit(doc.n, doc.n); }","reduce":"_sum"}})";

TEST_F(PurgedRows, Vanish) {
  put_design(kSum);
  for (int i = 1; i <= 20; ++i) number(fmt::format("d{:02}", i), i);
  build();
  purge("d20");
  purge("d03");
  build();
  EXPECT_EQ(rows(), "d01 d02 d04 d05 d06 d07 d08 d09 d10 d11 d12 d13 d14 d15 d16 d17 d18 d19 187");
}

TEST_F(PurgedRows, VanishWhenTheIndexIsBehind) {
  put_design(kSum);
  for (int i = 1; i <= 9; ++i) number(fmt::format("d{}", i), i);
  build();
  // More than one batch, and documents that are written again before or after their purge.
  for (int i = 1; i <= 8; ++i) purge(fmt::format("d{}", i));
  number("d8", 50);
  number("d2", 20);
  for (int i = 10; i <= 20; ++i) number(fmt::format("e{}", i), i);
  purge("e15");
  number("d4", 30);
  purge("d4");
  number("e15", 100);
  build();
  EXPECT_EQ(rows(), "d9 e10 e11 e12 e13 e14 e16 e17 e18 e19 d2 e20 d8 e15 329");
}

TEST_F(PurgedRows, AreThoseOfTheNextWinner) {
  put_design(kSum);
  std::vector<docs::IncomingDocument> documents;
  for (const char* json : {R"({"_id":"a","_rev":"1-b","n":5})", R"({"_id":"a","_rev":"1-c","n":7})"})
    documents.push_back(docs::parse_document(json));
  docs::bulk_replicate(*store, catalog, "db", documents);
  build();
  EXPECT_EQ(rows(), "a 7");
  const docs::PurgeRequest request{"a", {docs::parse_revision("1-c")}};
  docs::purge(*store, open(), {&request, 1});
  build();
  EXPECT_EQ(rows(), "a 5");
}

// A kind whose indexes call a function when their first batch is mapped.
class Interrupted final : public Index {
 public:
  Interrupted(IndexPtr index, std::function<void()> between)
      : index_(std::move(index)), between_(std::move(between)) {}

  std::string_view kind() const override { return index_->kind(); }
  const std::string& signature() const override { return index_->signature(); }
  const std::string& design_document() const override { return index_->design_document(); }
  bool automatic() const override { return index_->automatic(); }
  IndexPtr within(const BuildLimits& limits) const override {
    return std::make_shared<Interrupted>(index_->within(limits), between_);
  }
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override {
    between_();
    return index_->map(documents);
  }
  std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                       bool resume_only) const override {
    return index_->more_work(store, keys, resume_only);
  }
  bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const override {
    return index_->needs_work(tx, keys);
  }

 private:
  const IndexPtr index_;
  const std::function<void()> between_;
};

class InterruptedKind final : public Kind {
 public:
  InterruptedKind(js::Pool& pool, std::function<void()> between)
      : kind_(pool), between_(std::move(between)) {}

  std::string_view name() const override { return kind_.name(); }
  std::vector<IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                const docs::Database* database) const override {
    auto found = kind_.indexes(design_id, body, database);
    for (auto& index : found) index = std::make_shared<Interrupted>(index, between_);
    return found;
  }
  void check(const std::string& design_id, std::string_view body,
             const docs::Checkpoint& checkpoint) const override {
    kind_.check(design_id, body, checkpoint);
  }

 private:
  const ViewKind kind_;
  const std::function<void()> between_;
};

TEST_F(PurgedRows, VanishFromAnIndexWhoseFirstBuildHasReadThem) {
  put_design(kSum);
  for (int i = 1; i <= 3; ++i) number(fmt::format("d{}", i), i);
  bool is_first = true;
  Kinds interrupted;
  interrupted.push_back(std::make_unique<InterruptedKind>(pool, [&] {
    if (!std::exchange(is_first, false)) return;
    for (const char* id : {"d1", "d2", "d3"}) purge(id);
    remove_passed();
    EXPECT_EQ(purged_documents(), 3u) << "the build, which has written no row yet, needs them";
  }));
  Builder slow(*store, catalog, queue, monitor, interrupted, clock, BuilderOptions{.batch_documents = 7});
  request();
  for (const auto& job : accept()) slow.run(job);
  EXPECT_FALSE(is_first);
  EXPECT_EQ(rows(), "");
}

TEST_F(PurgedRows, AreForgottenWhenAllIndexesHavePassed) {
  put_design(kSum);
  for (int i = 1; i <= 4; ++i) number(fmt::format("d{}", i), i);
  purge("d1");
  purge("d2");
  EXPECT_EQ(purged_documents(), 2u);
  remove_passed();
  EXPECT_EQ(purged_documents(), 1u) << "no index was ever built; the last one stays";
  build();
  purge("d3");
  purge("d4");
  remove_passed();
  EXPECT_EQ(purged_documents(), 2u) << "the index has not passed them";
  build();
  remove_passed();
  EXPECT_EQ(purged_documents(), 1u);
  number("d5", 5);
  build();
  EXPECT_EQ(rows(), "d5 5");
}

}  // namespace
}  // namespace divan::index::views
