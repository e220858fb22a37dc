#include "divan/docs/purge.h"

#include <map>

#include "divan/base/precompiled_test.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/testing.h"
#include "divan/docs/validation.h"

namespace divan::docs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using namespace std::string_literals;

class Purge : public DocsTest {
 protected:
  Database open() {
    return with_db([](kv::Transaction&, const Database& db) { return db; });
  }

  // The purged revisions as text.
  std::vector<std::string> purge_revs(const std::string& id, const std::vector<std::string>& revs) {
    PurgeRequest request{id, {}};
    for (const auto& rev : revs) request.revisions.push_back(parse_revision(rev));
    std::vector<std::string> purged;
    const auto results = purge(*store, open(), {&request, 1});
    for (const auto& revision : results.front()) purged.push_back(revision.to_string());
    return purged;
  }

  RevTree tree(std::string_view id) {
    return with_db([&](kv::Transaction& tx, const Database& db) { return read_tree(tx, db, id); });
  }

  std::vector<std::string> records() {
    std::vector<std::string> found;
    with_db([&](kv::Transaction& tx, const Database& db) {
      visit_purge_records(tx, db, [&](const PurgeRecord& record) {
        found.push_back(record.request.id);
        for (const auto& revision : record.request.revisions) found.back() += " " + revision.to_string();
        return true;
      });
    });
    return found;
  }

  // What indexes read after `since`: ids, those of deleted and purged documents with a minus.
  std::string index_changes(const kv::Versionstamp& since, std::size_t limit, bool* is_all = nullptr) {
    return with_db([&](kv::Transaction& tx, const Database& db) {
      const auto found = changes_for_indexes(tx, db, since, limit);
      if (is_all != nullptr) *is_all = found.is_all;
      std::string text;
      for (const auto& change : found.changes) text += (change.deleted ? " -" : " ") + change.id;
      return text;
    });
  }
};

TEST_F(Purge, OfTheOnlyLeafLeavesNoRow) {
  const auto first = put(R"({"_id":"a","n":1,"_attachments":{"x":{"data":"YWJj"}}})");
  const auto second = put(R"({"_id":"a","n":2,"_rev":")" + first + R"("})");
  const auto kept = put(R"({"_id":"b"})");
  const auto before = info().update_seq;
  EXPECT_THAT(purge_revs("a", {first}), IsEmpty()) << "it is no leaf";
  EXPECT_EQ(info().doc_count, 2);
  EXPECT_THAT(purge_revs("a", {first, second, "7-x"}), ElementsAre(second));
  EXPECT_THAT(tree("a"), IsEmpty());
  EXPECT_THAT(changes(), SizeIs(1));
  EXPECT_EQ(info().doc_count, 1);
  EXPECT_EQ(info().body_bytes, 2);
  EXPECT_EQ(info().attachment_bytes, 0);
  EXPECT_GT(info().update_seq, before);
  EXPECT_GT(info().purge_seq, before);
  EXPECT_THAT(purge_revs("a", {second}), IsEmpty()) << "it is purged already";
  EXPECT_THAT(records(), ElementsAre("a " + first, "a " + first + " " + second + " 7-x", "a " + second));
  EXPECT_THAT(findings(), IsEmpty());
  // It can be written anew, as if it had never existed.
  EXPECT_EQ(put(R"({"_id":"a","n":1,"_attachments":{"x":{"data":"YWJj"}}})"), first);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, OfTheWinnerMakesAnotherLeafWin) {
  replicate({R"({"_id":"a","_rev":"1-b","n":"b","_attachments":{"x":{"data":"YWJj"}}})",
             R"({"_id":"a","_rev":"1-c","n":"c"})", R"({"_id":"a","_rev":"9-d","_deleted":true})"});
  put(R"({"_id":"z"})");
  EXPECT_THAT(purge_revs("a", {"1-c"}), ElementsAre("1-c"));
  EXPECT_NE(get("a").find(R"("n":"b")"), std::string::npos);
  ASSERT_THAT(changes(), SizeIs(2));
  EXPECT_EQ(changes().back().id, "a") << "it has a new change";
  EXPECT_EQ(changes().back().winner.to_string(), "1-b");
  EXPECT_EQ(changes().back().other_leaves, 1u);
  EXPECT_THAT(findings(), IsEmpty());
  // A deleted leaf is left: the document is deleted then.
  EXPECT_THAT(purge_revs("a", {"1-b"}), ElementsAre("1-b"));
  EXPECT_TRUE(changes().back().deleted);
  EXPECT_EQ(info().doc_count, 1);
  EXPECT_EQ(info().doc_del_count, 1);
  EXPECT_EQ(info().attachment_bytes, 0);
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_THAT(purge_revs("a", {"9-d"}), ElementsAre("9-d"));
  EXPECT_EQ(info().doc_del_count, 0);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, OfManyLeavesTakesSeveralTransactions) {
  std::vector<std::string> revisions, revs;
  for (int i = 0; i < 600; ++i) {
    revs.push_back("1-" + std::to_string(1000 + i));
    revisions.push_back(R"({"_id":"a","_rev":")" + revs.back() + R"("})");
  }
  replicate(revisions);
  revs.pop_back();
  EXPECT_EQ(purge_revs("a", revs), revs);
  EXPECT_THAT(tree("a"), SizeIs(1));
  EXPECT_THAT(records(), SizeIs(3));
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, OfTheSameDocumentTwiceInOneRequest) {
  replicate({R"({"_id":"a","_rev":"1-b"})", R"({"_id":"a","_rev":"1-c"})"});
  const std::vector<PurgeRequest> requests = {{"a", {parse_revision("1-b")}}, {"a", {parse_revision("1-c")}}};
  const auto purged = purge(*store, open(), requests);
  EXPECT_THAT(purged, ElementsAre(ElementsAre(parse_revision("1-b")), ElementsAre(parse_revision("1-c"))));
  EXPECT_EQ(info().doc_count, 0);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, OfWhatCannotExistIsRefusedAndNothingIsPurged) {
  const auto rev = put(R"({"_id":"a"})");
  for (const std::string& id : {std::string(), "_x"s, "_local/a"s, "\xff"s, std::string(5000, 'x')}) {
    const std::vector<PurgeRequest> requests = {{"a", {parse_revision(rev)}}, {id, {parse_revision("0-1")}}};
    EXPECT_THROW(purge(*store, open(), requests), Error) << id;
  }
  EXPECT_THAT(records(), IsEmpty());
  EXPECT_THAT(tree("a"), SizeIs(1));
}

TEST_F(Purge, IsCancelledBetweenItsTransactions) {
  std::vector<std::string> documents;
  PurgeRequest request{"a", {}};
  for (int i = 0; i < 600; ++i) {
    request.revisions.push_back(parse_revision("1-" + std::to_string(1000 + i)));
    documents.push_back(R"({"_id":"a","_rev":")" + request.revisions.back().to_string() + R"("})");
  }
  replicate(documents);
  int transactions = 0;
  const Checkpoint after_one = [&] {
    if (transactions++ == 1) throw Error(499, "client_closed_request", "");
  };
  EXPECT_THROW(purge(*store, open(), {&request, 1}, after_one), Error);
  EXPECT_THAT(tree("a"), SizeIs(350));
  EXPECT_THAT(records(), SizeIs(1));
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, KeepsTheLastRecords) {
  with_db([](kv::Transaction& tx, const Database& db) { EXPECT_EQ(purge_records_limit(tx, db), 1000); });
  for (int i = 0; i < 5; ++i) purge_revs("d" + std::to_string(i), {"1-a"});
  EXPECT_THAT(records(), SizeIs(5));
  set_purge_records_limit(*store, catalog, "db", 2);
  EXPECT_THAT(records(), ElementsAre("d3 1-a", "d4 1-a"));
  const std::vector<PurgeRequest> requests = {{"e", {}}, {"f", {}}, {"g", {}}};
  purge(*store, open(), requests);
  EXPECT_THAT(records(), ElementsAre("f", "g"));
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, OfADatabaseThatIsGone) {
  const auto database = open();
  store->run([&](kv::Transaction& tx) {
    catalog.remove(tx, "db");
    catalog.create(tx, "db");
  });
  const auto rev = put(R"({"_id":"a"})");
  const PurgeRequest request{"a", {parse_revision(rev)}};
  EXPECT_THROW(purge(*store, database, {&request, 1}), Error);
  EXPECT_THAT(tree("a"), SizeIs(1)) << "it is another database of the same name";
}

TEST_F(Purge, OfADesignDocumentThatValidates) {
  const std::string function = R"("validate_doc_update":"function () {}")";
  const auto list = [&] {
    return with_db([](kv::Transaction& tx, const Database& db) { return read_validators(tx, db); });
  };
  replicate({R"({"_id":"_design/a","_rev":"1-b",)" + function + "}", R"({"_id":"_design/a","_rev":"1-c"})",
             R"({"_id":"_design/b","_rev":"1-x",)" + function + "}"});
  EXPECT_EQ(list(), R"({"_design/b":"1-x"})");
  purge_revs("_design/a", {"1-c"});
  EXPECT_EQ(list(), R"({"_design/a":"1-b","_design/b":"1-x"})");
  EXPECT_THAT(findings(), IsEmpty());
  purge_revs("_design/a", {"1-b"});
  purge_revs("_design/b", {"1-x"});
  EXPECT_EQ(list(), "");
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Purge, IsSeenByIndexesInOrder) {
  std::map<std::string, std::string> revs;
  for (const char* id : {"a", "b", "c", "d"}) revs[id] = put(R"({"_id":")" + std::string(id) + R"("})");
  bool is_all = false;
  EXPECT_EQ(index_changes({}, 10, &is_all), " a b c d");
  EXPECT_TRUE(is_all);
  purge_revs("b", {revs["b"]});
  const auto purged_at = info().update_seq;
  put(R"({"_id":"e"})");
  purge_revs("d", {revs["d"]});
  EXPECT_EQ(index_changes({}, 10), " a c -b e -d");
  EXPECT_EQ(index_changes(purged_at, 10), " e -d");
  EXPECT_EQ(index_changes({}, 3, &is_all), " a c -b");
  EXPECT_FALSE(is_all);
  // A document that is written again is there once, with its last change.
  put(R"({"_id":"b"})");
  EXPECT_EQ(index_changes({}, 10), " a c e -d b");
  purge_revs("b", {revs["b"]});
  EXPECT_EQ(index_changes({}, 10), " a c e -d -b");
  with_db([&](kv::Transaction& tx, const Database& db) {
    EXPECT_EQ(count_index_changes(tx, db, {}, 100), 6);  // two of `b`
    EXPECT_EQ(count_index_changes(tx, db, {}, 4), 4);
    EXPECT_EQ(last_sequence(tx, db), changes_for_indexes(tx, db, {}, 10).changes.back().sequence);
  });
}

// Compares random edits and purges with a model: a set of leaves for each document.
TEST_F(Purge, RandomOnesLeaveTheOtherLeaves) {
  SeededRng random(7);
  std::map<std::string, std::map<std::string, std::string>> model;  // bodies by id and revision
  for (int step = 0; step < 300; ++step) {
    const std::string id = "d" + std::to_string(random.below(4));
    auto& leaves = model[id];
    if (random.below(3) > 0) {
      const std::string rev = "1-" + std::to_string(100 + random.below(40));
      const bool has_attachment = random.below(2) == 0;
      const std::string body = "\"n\":" + std::to_string(step);
      if (leaves.contains(rev)) continue;
      leaves[rev] = body;
      replicate({R"({"_id":")" + id + R"(","_rev":")" + rev + "\"," + body +
                 (random.below(3) == 0 ? R"(,"_deleted":true)" : "") +
                 (has_attachment ? R"(,"_attachments":{"x":{"data":"YWJj"}})" : "") + "}"});
    } else {
      std::vector<std::string> revs, expected;
      for (const auto& [rev, body] : leaves) {
        if (random.below(2) == 0) expected.push_back(rev);
      }
      revs = expected;
      revs.push_back("3-none");
      for (const auto& rev : expected) leaves.erase(rev);
      EXPECT_EQ(purge_revs(id, revs), expected);
    }
    std::vector<std::string> stored;
    for (const auto& leaf : tree(id)) {
      const auto rev = leaf.revision().to_string();
      stored.push_back(rev);
      EXPECT_NE(get(id, {}, rev).find(leaves[rev]), std::string::npos) << rev;
    }
    std::vector<std::string> known;
    for (const auto& [rev, body] : leaves) known.push_back(rev);
    ASSERT_THAT(stored, ::testing::UnorderedElementsAreArray(known)) << step;
    ASSERT_THAT(findings(), IsEmpty()) << step;
  }
}

TEST_F(Purge, DamagedRowsAreFound) {
  const auto rev = put(R"({"_id":"a"})");
  purge_revs("a", {rev});
  const auto found_after = [&](PurgeRow row, const std::string& value) {
    kv::testing::MapRows rows(*store);
    rows.map().lower_bound(open().keys().purges(row))->second = value;
    kv::Findings found;
    Check check(INT64_MAX, found);
    kv::testing::run_checks(rows, {&check});
    return found.kept();
  };
  EXPECT_THAT(found_after(PurgeRow::record, "x"), Not(IsEmpty()));
  EXPECT_THAT(found_after(PurgeRow::document, "x"), Not(IsEmpty()));
  store->run([&](kv::Transaction& tx) { tx.add(open().keys().stat(kPurgeRecords), 1); });
  EXPECT_THAT(findings(), ElementsAre(::testing::HasSubstr("`purge_records` is 2, but should be 1")));
}

}  // namespace
}  // namespace divan::docs
