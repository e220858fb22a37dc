#include "divan/docs/validation.h"

#include "divan/base/precompiled_test.h"
#include "divan/docs/check.h"
#include "divan/docs/testing.h"
#include "divan/kv/check_testing.h"

namespace divan::docs {
namespace {

class Validation : public DocsTest {
 protected:
  std::string validators() {
    std::string list;
    with_db([&](kv::Transaction& tx, const Database& db) { list = read_validators(tx, db); });
    return list;
  }

  // Writes like a server whose database has no functions; returns the list if it has some.
  std::string refused_by(const std::string& json, std::string_view known = {}) {
    try {
      with_db([&](kv::Transaction& tx, const Database& db) {
        Writer writer(tx, db, known);
        writer.edit(parse_document(json));
        writer.finish();
      });
      return {};
    } catch (const ValidatorsChanged& changed) { return changed.validators; }
  }

  std::string replicate_design(const std::string& json) {
    with_db([&](kv::Transaction& tx, const Database& db) {
      Writer writer(tx, db, read_validators(tx, db));
      const auto document = parse_document(json);
      writer.replicate(document.id, {&document, 1});
      writer.finish();
    });
    return validators();
  }

  // As [document, replaced], or "none".
  std::string case_of(const std::string& json, bool new_edits = true) {
    std::string shown = "none";
    with_db([&](kv::Transaction& tx, const Database& db) {
      if (const auto found = validation_case(tx, db, parse_document(json), new_edits))
        shown = "[" + found->document + "," + found->replaced + "]";
    });
    return shown;
  }
};

const std::string kFunction = R"("validate_doc_update":"function () {}")";

TEST_F(Validation, TheListFollowsTheDesignDocuments) {
  EXPECT_EQ(validators(), "");
  const std::string b = put(R"({"_id":"_design/b",)" + kFunction + "}");
  EXPECT_EQ(validators(), R"({"_design/b":")" + b + R"("})");
  EXPECT_EQ(replicate_design(R"({"_id":"_design/a","_rev":"1-a","v\u0061lidate_doc_update":"f"})"),
            R"({"_design/a":"1-a","_design/b":")" + b + R"("})");
  // Without a function, or deleted.
  EXPECT_EQ(replicate_design(R"({"_id":"_design/a","_rev":"2-a","_revisions":{"start":2,"ids":["a","a"]}})"),
            R"({"_design/b":")" + b + R"("})");
  EXPECT_EQ(replicate_design(
                R"({"_id":"_design/b","_rev":"9-b","_deleted":true,"_revisions":{"start":2,"ids":["d",")" +
                b.substr(2) + R"("]}})"),
            "");
}

TEST_F(Validation, AConflictIsDecidedByTheWinner) {
  EXPECT_EQ(replicate_design(R"({"_id":"_design/a","_rev":"1-b",)" + kFunction + "}"),
            R"({"_design/a":"1-b"})");
  // Loses.
  EXPECT_EQ(replicate_design(R"({"_id":"_design/a","_rev":"1-a"})"), R"({"_design/a":"1-b"})");
  // Wins.
  EXPECT_EQ(replicate_design(R"({"_id":"_design/a","_rev":"1-c"})"), "");
  // The loser with the function wins when the winner is deleted.
  EXPECT_EQ(
      replicate_design(
          R"({"_id":"_design/a","_rev":"2-d","_deleted":true,"_revisions":{"start":2,"ids":["d","c"]}})"),
      R"({"_design/a":"1-b"})");
}

TEST_F(Validation, DocumentsAreOnlyWrittenWithThePresentList) {
  EXPECT_EQ(refused_by(R"({"_id":"x"})"), "");
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  const std::string list = validators();
  EXPECT_EQ(refused_by(R"({"_id":"y"})"), list);
  EXPECT_EQ(info().doc_count, 2);
  EXPECT_EQ(refused_by(R"({"_id":"y"})", list), "");
  EXPECT_EQ(info().doc_count, 3);
}

TEST_F(Validation, AWriteConflictsWithAChangeOfTheList) {
  const auto tx = store->begin();
  Writer writer(*tx, catalog.open(*tx, "db"));
  writer.edit(parse_document(R"({"_id":"x"})"));
  writer.finish();
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  EXPECT_THROW(tx->commit(), kv::Error);
  EXPECT_EQ(info().doc_count, 1);
}

TEST_F(Validation, ABulkEditContinuesWithWhatIsValid) {
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  std::vector<IncomingDocument> documents{parse_document(R"({"_id":"x"})"), parse_document(R"({"_id":"y"})"),
                                          parse_document(R"({"_id":"z"})"), parse_document(R"({"_id":"w"})")};
  BulkEdit edit(catalog, "db", documents, rng);
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { edit.write(tx); }), ValidatorsChanged);
  ASSERT_EQ(edit.unwritten().size(), 4u);
  const std::vector<std::optional<Error>> errors{std::nullopt, forbidden("no"), std::nullopt, std::nullopt};
  edit.validated(validators(), errors);
  do {
    store->run([&](kv::Transaction& tx) { edit.write(tx); });
  } while (edit.committed());
  const auto results = edit.take_results();
  ASSERT_EQ(results.size(), 4u);
  EXPECT_FALSE(results[0].error);
  EXPECT_EQ(results[1].error->reason(), "no");
  EXPECT_FALSE(results[3].error);
  EXPECT_EQ(results[3].id, "w");
}

TEST_F(Validation, AFunctionSeesTheDocumentAndTheOneThatItReplaces) {
  EXPECT_EQ(case_of(R"({"_id":"a","n":1})"), R"([{"_id":"a","n":1},null])");
  const std::string rev = put(R"({"_id":"a","n":1})");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":")" + rev + R"(","n":2})"),
            R"([{"_id":"a","_rev":")" + rev + R"(","_revisions":{"start":1,"ids":[")" + rev.substr(2) +
                R"("]},"n":2},{"_id":"a","_rev":")" + rev + R"(","n":1}])");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":")" + rev + R"(","_deleted":true})"),
            R"([{"_id":"a","_rev":")" + rev + R"(","_deleted":true,"_revisions":{"start":1,"ids":[")" +
                rev.substr(2) + R"("]}},{"_id":"a","_rev":")" + rev + R"(","n":1}])");
}

TEST_F(Validation, ConflictsAndDesignDocumentsAreNotValidated) {
  put(R"({"_id":"a"})");
  EXPECT_EQ(case_of(R"({"_id":"a"})"), "none");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":"1-x"})"), "none");
  EXPECT_EQ(case_of(R"({"_id":"b","_rev":"1-x"})"), "none");
  EXPECT_EQ(case_of(R"({"_id":"_design/b"})"), "none");
  EXPECT_EQ(case_of(R"({"_id":"_design/b","_rev":"1-b"})", false), "none");
}

TEST_F(Validation, ADeletedDocumentIsCreatedAgainWithoutTheOldOne) {
  const std::string first = put(R"({"_id":"a","n":1})");
  const std::string deleted = put(R"({"_id":"a","_rev":")" + first + R"(","_deleted":true,"why":"x"})");
  EXPECT_EQ(case_of(R"({"_id":"a","n":2})"), R"([{"_id":"a","n":2},null])");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":")" + deleted + R"("})"), "none");
}

TEST_F(Validation, AReplicatedRevisionReplacesItsNewestAncestor) {
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"n":2})", false),
            R"([{"_id":"a","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"n":2},null])");
  replicate({R"({"_id":"a","_rev":"1-a","n":1})"});
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":"3-c","_revisions":{"start":3,"ids":["c","b","a"]},"n":2})", false),
            R"([{"_id":"a","_rev":"3-c","_revisions":{"start":3,"ids":["c","b","a"]},"n":2},)"
            R"({"_id":"a","_rev":"1-a","n":1}])");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":"1-a","n":1})", false), "none");
}

TEST_F(Validation, AttachmentsAreStubs) {
  const std::string rev =
      put(R"({"_id":"a","_attachments":{"x":{"content_type":"text/plain","data":"MQ=="}}})");
  EXPECT_THAT(
      case_of(R"({"_id":"a","_rev":")" + rev +
              R"(","_attachments":{"x":{"stub":true},"y":{"data":"MjM="},"z":{"stub":true}}})"),
      ::testing::AllOf(::testing::HasSubstr(R"("x":{"content_type":"text/plain","revpos":1,"digest":"md5-)"),
                       ::testing::HasSubstr(R"("length":2,"stub":true)"),
                       ::testing::Not(::testing::HasSubstr("\"z\""))));
}

TEST_F(Validation, AWrongListIsFound) {
  const auto findings_of = [&] {
    kv::Findings findings;
    Check check(store->begin()->read_version(), findings);
    kv::testing::MapRows rows(*store);
    kv::testing::run_checks(rows, {&check});
    return findings.count();
  };
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  EXPECT_EQ(findings_of(), 0u);
  with_db([&](kv::Transaction& tx, const Database& db) { tx.clear(db.keys().config(kValidators)); });
  EXPECT_EQ(findings_of(), 1u);
  with_db([&](kv::Transaction& tx, const Database& db) {
    tx.set(db.keys().config(kValidators), R"({"_design/a":"1-other"})");
  });
  EXPECT_EQ(findings_of(), 1u);
}

TEST_F(Validation, ADamagedListIsAnError) {
  for (const std::string list : {"[]", "7", R"({"_design/a":7})", R"({"_design/a":"x"})"}) {
    try {
      parse_validators(list);
      FAIL() << list;
    } catch (const Error& error) { EXPECT_EQ(error.status(), 500); }
  }
}

}  // namespace
}  // namespace divan::docs
