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

  // Writes a new document that functions with this list have accepted. Returns what is wrong.
  std::string refused_by(const std::string& json, const std::string& list = {}) {
    try {
      with_db([&](kv::Transaction& tx, const Database& db) {
        Writer writer(tx, db, {list, db.number()});
        writer.edit(parse_document(json), Acceptance{});
        writer.finish();
      });
      return "written";
    } catch (const NotValidated& error) { return error.list_changed ? "list" : "acceptance"; }
  }

  std::string replicate_design(const std::string& json) {
    with_db([&](kv::Transaction& tx, const Database& db) {
      Writer writer(tx, db, {read_validators(tx, db), db.number()});
      const auto document = parse_document(json);
      writer.replicate(document.id, {&document, 1});
      writer.finish();
    });
    return validators();
  }

  static std::string old_of(const std::string& rev) {
    return R"({"_id":"a","_rev":")" + rev + R"(","n":1,"_revisions":{"start":1,"ids":[")" + rev.substr(2) +
           R"("]}})";
  }

  std::int64_t number() {
    return with_db([](kv::Transaction&, const Database& db) { return db.number(); });
  }

  // As [document, replaced], or "none".
  std::string case_of(const std::string& json, bool new_edits = true) {
    std::string shown = "none";
    with_db([&](kv::Transaction& tx, const Database& db) {
      if (const auto found = validation_case(tx, db, parse_document(json), new_edits))
        shown = "[" + found->document + "," + found->replaced_document + "]";
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
  EXPECT_EQ(refused_by(R"({"_id":"x"})"), "written");
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  const std::string list = validators();
  EXPECT_EQ(refused_by(R"({"_id":"y"})"), "list");
  EXPECT_EQ(info().doc_count, 2);
  EXPECT_EQ(refused_by(R"({"_id":"y"})", list), "written");
  EXPECT_EQ(info().doc_count, 3);
  with_db([&](kv::Transaction& tx, const Database& db) {
    EXPECT_THROW(Writer(tx, db, {list, db.number() + 1}), NotValidated);
  });
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
  EXPECT_THROW(store->run([&](kv::Transaction& tx) { edit.write(tx); }), NotValidated);
  ASSERT_EQ(edit.unwritten(true).size(), 4u);
  ASSERT_EQ(edit.unwritten(false).size(), 1u);
  const Verdict good{{}, Acceptance{}};
  const std::vector<Verdict> verdicts{good, {forbidden("no"), {}}, good, good};
  edit.validated({validators(), number()}, verdicts);
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

// An acceptance is for the leaf that the document replaced when it was validated.
TEST_F(Validation, AnEditIsOnlyWrittenAsItWasValidated) {
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  const auto written = [&](const std::string& json, const std::optional<Acceptance>& acceptance) {
    try {
      return with_db([&](kv::Transaction& tx, const Database& db) {
        Writer writer(tx, db, {read_validators(tx, db), db.number()});
        const auto result = writer.edit(parse_document(json), acceptance);
        writer.finish();
        return result.error ? result.error->name() : result.revision.to_string();
      });
    } catch (const NotValidated&) { return std::string("not validated"); }
  };
  const std::string rev = written(R"({"_id":"x"})", Acceptance{});
  const std::string update = R"({"_id":"x","_rev":")" + rev + R"("})";
  // It conflicted when it was validated, or replaced nothing, or another leaf.
  EXPECT_EQ(written(update, std::nullopt), "not validated");
  EXPECT_EQ(written(update, Acceptance{}), "not validated");
  EXPECT_EQ(written(update, Acceptance{parse_revision("1-other")}), "not validated");
  EXPECT_EQ(written(R"({"_id":"x"})", std::nullopt), "conflict");
  EXPECT_EQ(written(update, Acceptance{parse_revision(rev)}).substr(0, 2), "2-");
}

TEST_F(Validation, AReplicatedRevisionIsOnlyWrittenAsItWasValidated) {
  put(R"({"_id":"_design/a",)" + kFunction + "}");
  const auto written = [&](const std::string& json, const std::optional<Acceptance>& acceptance) {
    try {
      with_db([&](kv::Transaction& tx, const Database& db) {
        Writer writer(tx, db, {read_validators(tx, db), db.number()});
        const auto document = parse_document(json);
        writer.replicate("x", {&document, 1}, {&acceptance, 1});
        writer.finish();
      });
      return true;
    } catch (const NotValidated&) { return false; }
  };
  const std::string first = R"({"_id":"x","_rev":"1-a"})";
  const std::string second = R"({"_id":"x","_revisions":{"start":2,"ids":["b","a"]}})";
  EXPECT_FALSE(written(first, std::nullopt));
  EXPECT_TRUE(written(first, Acceptance{}));
  EXPECT_TRUE(written(first, std::nullopt));  // it is known
  EXPECT_FALSE(written(second, Acceptance{}));
  EXPECT_TRUE(written(second, Acceptance{parse_revision("1-a")}));
}

TEST_F(Validation, AFunctionSeesTheDocumentAndTheOneThatItReplaces) {
  EXPECT_EQ(case_of(R"({"_id":"a","n":1})"), R"([{"_id":"a","n":1},null])");
  const std::string rev = put(R"({"_id":"a","n":1})");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":")" + rev + R"(","n":2})"),
            R"([{"_id":"a","_rev":")" + rev + R"(","_revisions":{"start":1,"ids":[")" + rev.substr(2) +
                R"("]},"n":2},)" + old_of(rev) + "]");
  EXPECT_EQ(case_of(R"({"_id":"a","_rev":")" + rev + R"(","_deleted":true})"),
            R"([{"_id":"a","_rev":")" + rev + R"(","_deleted":true,"_revisions":{"start":1,"ids":[")" +
                rev.substr(2) + R"("]}},)" + old_of(rev) + "]");
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
            R"({"_id":"a","_rev":"1-a","n":1,"_revisions":{"start":1,"ids":["a"]}}])");
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
