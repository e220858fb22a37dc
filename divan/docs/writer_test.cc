// Edits, replicated revisions, and bulk writes.
#include <fmt/core.h>

#include <thread>

#include "divan/docs/testing.h"

#include "divan/docs/database_settings.h"
#include "divan/docs/leaf_row.h"

namespace divan::docs {
namespace {

struct Writers : DocsTest {};

TEST_F(Writers, TheLifeOfADocument) {
  const auto first = put(R"({"_id":"a","n":1})");
  EXPECT_EQ(get("a"), R"({"_id":"a","_rev":")" + first + R"(","n":1})");
  EXPECT_TRUE(first.starts_with("1-"));
  EXPECT_EQ(edit(R"({"_id":"a","n":2})").error->name(), "conflict");
  EXPECT_EQ(edit(R"({"_id":"a","_rev":"1-f","n":2})").error->name(), "conflict");
  EXPECT_EQ(edit(R"({"_id":"new","_rev":"1-f"})").error->name(), "conflict");
  const auto second = put(R"({"_id":"a","_rev":")" + first + R"(","n":2})");
  EXPECT_TRUE(second.starts_with("2-"));
  EXPECT_EQ(edit(R"({"_id":"a","_rev":")" + first + R"(","n":3})").error->name(), "conflict");
  EXPECT_EQ(get("a", {.revs = true}), R"({"_id":"a","_rev":")" + second +
                                          R"(","n":2,"_revisions":{"start":2,"ids":[")" + second.substr(2) +
                                          "\",\"" + first.substr(2) + "\"]}}");
  EXPECT_EQ(info().doc_count, 1);

  const auto third = put(R"({"_id":"a","_rev":")" + second + R"(","_deleted":true})");
  EXPECT_THAT(error_of([&] { get("a"); }), testing::HasSubstr("deleted"));
  EXPECT_EQ(get("a", {}, third), R"({"_id":"a","_rev":")" + third + R"(","_deleted":true})");
  EXPECT_EQ(info().doc_count, 0);
  EXPECT_EQ(info().doc_del_count, 1);
  EXPECT_EQ(info().body_bytes, 2);

  EXPECT_TRUE(put(R"({"_id":"a","n":4})").starts_with("4-"));
  EXPECT_EQ(info().doc_count, 1);
  EXPECT_EQ(info().doc_del_count, 0);
}

TEST_F(Writers, TheSameEditGivesTheSameRevision) {
  const auto rev = put(R"({"_id":"a","n":1})");
  EXPECT_EQ(put(R"({"_id":"b", "n": 1})"), rev);
}

TEST_F(Writers, ADeletedDocumentCanOnlyBeRecreated) {
  const auto rev = put(R"({"_id":"a"})");
  const auto deleted = put(R"({"_id":"a","_rev":")" + rev + R"(","_deleted":true})");
  // As in CouchDB 3 (couch_db_updater:merge_rev_tree).
  for (const std::string& json : {R"({"_id":"a","_rev":")" + deleted + R"(","n":1})",
                                  R"({"_id":"a","_rev":")" + deleted + R"(","_deleted":true})",
                                  std::string(R"({"_id":"a","_deleted":true})")}) {
    const auto result = edit(json);
    ASSERT_TRUE(result.error) << json;
    EXPECT_EQ(result.error->name(), "conflict");
  }
  EXPECT_TRUE(put(R"({"_id":"a","n":1})").starts_with("3-"));
}

TEST_F(Writers, ReplicatedRevisionsMakeATree) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","r"]},"v":"b"})",
             R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"c"})",
             R"({"_id":"a","_revisions":{"start":3,"ids":["d","b","r"]},"_deleted":true})"});
  EXPECT_EQ(get("a", {.conflicts = true, .deleted_conflicts = true}),
            R"({"_id":"a","_rev":"2-c","v":"c","_deleted_conflicts":["3-d"]})");
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_EQ(info().doc_count, 1);
  // A known revision has no effect.
  const auto before = changes().front().sequence;
  replicate({R"({"_id":"a","_rev":"2-b"})", R"({"_id":"a","_rev":"2-c"})"});
  EXPECT_EQ(changes().front().sequence, before);
  // A conflict, and its resolution.
  replicate({R"({"_id":"a","_revisions":{"start":3,"ids":["e","b"]},"v":"e"})"});
  EXPECT_EQ(get("a", {.conflicts = true}), R"({"_id":"a","_rev":"3-e","v":"e","_conflicts":["2-c"]})");
  EXPECT_EQ(get("a", {.revs = true}, "3-e"),
            R"({"_id":"a","_rev":"3-e","v":"e","_revisions":{"start":3,"ids":["e","b","r"]}})");
  put(R"({"_id":"a","_rev":"2-c","_deleted":true})");
  EXPECT_EQ(get("a", {.conflicts = true}), R"({"_id":"a","_rev":"3-e","v":"e"})");
  EXPECT_EQ(info().doc_count, 1);
  EXPECT_THAT(error_of([&] { replicate({R"({"_id":"a"})"}); }),
              testing::HasSubstr("Document rev must be given"));
}

TEST_F(Writers, EditsCanExceedTheHighestReplicatedGeneration) {
  replicate({R"({"_id":"a","_rev":"2147483648-x"})"});
  const std::string edited = put(R"({"_id":"a","_rev":"2147483648-x"})");
  EXPECT_THAT(edited, testing::StartsWith("2147483649-"));
  EXPECT_THAT(get("a", {}, edited), testing::HasSubstr(edited));
  EXPECT_THAT(put(R"({"_id":"a","_deleted":true,"_rev":")" + edited + R"("})"),
              testing::StartsWith("2147483650-"));
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_THAT(error_of([&] { replicate({R"({"_id":"b","_rev":"2147483649-x"})"}); }),
              testing::HasSubstr("Invalid rev format"));
  // Up to the highest possible one.
  Leaf last;
  last.path = {UINT32_MAX, {"z"}};
  last.body_bytes = 2;
  with_db([&](auto& tx, const Database& db) {
    tx.set(db.keys().leaf("c", false, last.revision()), encode_leaf(last));
  });
  const auto error = edit(R"({"_id":"c","_rev":"4294967295-z"})").error;
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), testing::HasSubstr("has the highest possible generation"));
}

TEST_F(Writers, ManyRevisionsOfADocumentTakeSeveralTransactions) {
  std::vector<IncomingDocument> revisions;
  for (int i = 0; i < 2'500; ++i)
    revisions.push_back(parse_document(fmt::format(R"({{"_id":"a","_rev":"1-{}"}})", i)));
  bulk_replicate(*store, catalog, "db", std::move(revisions));
  std::set<std::string> transactions;
  std::set<kv::Versionstamp> sequences;
  with_db([&](auto& tx, const Database& db) {
    for (const Leaf& leaf : read_tree(tx, db, "a")) {
      transactions.emplace(leaf.sequence.transaction_version());
      sequences.insert(leaf.sequence);
    }
  });
  // All of them in one would have more writes than a transaction has numbers for.
  EXPECT_EQ(transactions.size(), 3u);
  EXPECT_EQ(sequences.size(), 2'500u);
}

TEST_F(Writers, APathThatJoinsTwoLeavesReplacesBoth) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","r"]}})"});
  replicate({R"({"_id":"a","_rev":"3-c","v":1})"});
  replicate({R"({"_id":"a","_revisions":{"start":4,"ids":["d","c","b","r"]}})"});
  EXPECT_EQ(get("a", {.revs = true, .conflicts = true}),
            R"({"_id":"a","_rev":"4-d","_revisions":{"start":4,"ids":["d","c","b","r"]}})");
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_EQ(info().body_bytes, 2);
}

TEST_F(Writers, AHistoryIsTruncatedToTheStoresLimit) {
  with_db([](auto& tx, const Database& db) { write_config(tx, db, "revs_limit", "10000"); });
  std::string ids;
  for (int i = 0; i < 8000; ++i) ids += fmt::format("{}\"{:032x}\"", i == 0 ? "" : ",", i);
  replicate({R"({"_id":"a","_revisions":{"start":8000,"ids":[)" + ids + "]}}"});
  const auto path_of = [&](std::string_view id) {
    return with_db([&](auto& tx, const Database& db) { return read_tree(tx, db, id).front().path; });
  };
  EXPECT_GT(path_of("a").ids.size(), 5000u);
  const auto rev = put(R"({"_id":"a","_rev":")" + path_of("a").revision().to_string() + R"(","n":1})");
  EXPECT_TRUE(rev.starts_with("8001-"));
  EXPECT_GT(path_of("a").ids.size(), 5000u);
}

TEST_F(Writers, ARevisionLimitIsAtLeastOne) {
  with_db([](auto& tx, const Database& db) { write_config(tx, db, "revs_limit", "0"); });
  const auto rev = put(R"({"_id":"a"})");
  EXPECT_EQ(get("a", {}, rev), R"({"_id":"a","_rev":")" + rev + "\"}");
}

TEST_F(Writers, AForgottenRevisionMayBeRepeatedInTheSameCall) {
  with_db([](auto& tx, const Database& db) { write_config(tx, db, "revs_limit", "1"); });
  replicate({R"({"_id":"a","_rev":"1-a","v":1})", R"({"_id":"a","_revisions":{"start":2,"ids":["b","a"]}})",
             R"({"_id":"a","_rev":"1-a","v":"longer"})"});
  EXPECT_EQ(get("a", {}, "1-a"), R"({"_id":"a","_rev":"1-a","v":"longer"})");
  EXPECT_EQ(get("a", {.conflicts = true}), R"({"_id":"a","_rev":"2-b","_conflicts":["1-a"]})");
}

TEST_F(Writers, BulkKeepsTheOrderAndAConflictDoesNotAffectOthers) {
  put(R"({"_id":"b"})");
  std::vector<IncomingDocument> documents;
  for (const std::string_view json : {R"({"_id":"a"})", R"({"_id":"b"})", R"({"x":1})", R"({"_id":"a"})"}) {
    documents.push_back(parse_document(json));
  }
  const auto results = bulk_edit(*store, catalog, "db", documents, rng);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_FALSE(results[0].error);
  EXPECT_EQ(results[1].error->name(), "conflict");
  EXPECT_EQ(results[2].id.size(), 32u);
  EXPECT_EQ(results[3].error->name(), "conflict");
  EXPECT_EQ(info().doc_count, 3);
}

TEST_F(Writers, LargeDocumentsAreSplitIntoChunks) {
  catalog.set_max_old_revisions(0);
  const std::string text(3'000'000, 'x');
  const auto rev = put(R"({"_id":"a","t":")" + text + "\"}");
  EXPECT_EQ(get("a").size(), text.size() + rev.size() + 28);
  put(R"({"_id":"a","_rev":")" + rev + "\"}");
  const auto rows = with_db([&](auto& tx, const Database& db) {
    return tx.get_range(below(db.keys().section(Section::body))).rows.size();
  });
  EXPECT_EQ(rows, 0u);
  std::vector documents{parse_document(R"({"_id":"b","t":")" + std::string(kMaxDocumentBytes, 'x') + "\"}")};
  const auto result = bulk_edit(*store, catalog, "db", documents, rng).front();
  EXPECT_EQ(result.error->status(), 413);
  EXPECT_EQ(result.error->name(), "document_too_large");
}

TEST_F(Writers, ManyLargeDocumentsTakeSeveralTransactions) {
  std::vector<IncomingDocument> documents;
  for (int i = 0; i < 10; ++i) {
    documents.push_back(parse_document(R"({"t":")" + std::string(3'000'000, 'x') + "\"}"));
  }
  for (const auto& result : bulk_edit(*store, catalog, "db", documents, rng)) EXPECT_FALSE(result.error);
  EXPECT_EQ(info().doc_count, 10);
}

TEST_F(Writers, LargeConflictsTakeSeveralTransactions) {
  std::vector<std::string> documents;
  for (const std::string rev : {"a", "b", "c"}) {
    documents.push_back(R"({"_id":"a","_rev":"1-)" + rev + R"(","t":")" + std::string(4'000'000, 'x') +
                        "\"}");
  }
  replicate(documents);
  const auto tree = with_db([&](auto& tx, const Database& db) { return read_tree(tx, db, "a"); });
  EXPECT_EQ(tree.size(), 3u);
  EXPECT_EQ(changes().size(), 1u);
}

TEST_F(Writers, TwoWritersOfOneDocumentNeverBothWin) {
  constexpr int kThreads = 4, kRounds = 50;
  std::atomic<int> won = 0;
  std::vector<std::thread> threads;
  put(R"({"_id":"a","n":0})");
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto rev = with_db([&](auto& tx, const Database& db) {
          return find_document(tx, db, "a", std::nullopt).revision().revision().to_string();
        });
        std::vector documents{
            parse_document(fmt::format(R"({{"_id":"a","_rev":"{}","t":{},"i":{}}})", rev, t, i))};
        won += !bulk_edit(*store, catalog, "db", documents, rng).front().error;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto tree = with_db([&](auto& tx, const Database& db) { return read_tree(tx, db, "a"); });
  ASSERT_EQ(tree.size(), 1u);
  EXPECT_EQ(tree.front().path.generation, 1u + static_cast<unsigned>(won));
  EXPECT_EQ(changes().size(), 1u);
}

}  // namespace
}  // namespace divan::docs
