// Parsing a document's JSON, and what is rejected before it is written.
#include "divan/docs/local.h"
#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

struct Documents : DocsTest {};

TEST_F(Documents, TheLastOfDuplicateMembersRemains) {
  const auto document =
      parse_document(R"({"_id":"x","n":1,"_rev":"1-a","n":{"a":1,"a":2},"_rev":"2-b","_id":"y"})");
  EXPECT_EQ(document.id, "y");
  EXPECT_EQ(document.revision->to_string(), "2-b");
  EXPECT_EQ(document.body, R"({"n":{"a":2}})");
}

TEST_F(Documents, TheStateOfAReplicatorIsStored) {
  put(R"({"_id":"r","_replication_state":"triggered","_replication_state_time":1,"_replication_state_reason":"x",)"
      R"("_replication_id":"i","_replication_stats":{},"source":"s"})");
  EXPECT_THAT(
      get("r"),
      testing::EndsWith(R"("_replication_state":"triggered","_replication_state_time":1,)"
                        R"("_replication_state_reason":"x","_replication_id":"i","_replication_stats":{},)"
                        R"("source":"s"})"));
  EXPECT_THAT(error_of([&] { parse_document(R"({"_replication_other":1})"); }),
              testing::HasSubstr("Bad special document member: _replication_other"));
}

TEST_F(Documents, ParsingRemovesTheSpecialMembers) {
  const auto document = parse_document(
      R"({"z":1.50,"_id":"x","\u005frev":"3-abc","a":{"_id":1},"_deleted":true,"_conflicts":["1-a"],"y":2})");
  EXPECT_EQ(document.id, "x");
  EXPECT_EQ(document.revision->to_string(), "3-abc");
  EXPECT_TRUE(document.deleted);
  EXPECT_EQ(document.body, R"({"z":1.50,"a":{"_id":1},"y":2})");
}

TEST_F(Documents, ParsingRejectsInvalidDocuments) {
  const auto reason = [&](std::string_view json) { return error_of([&] { parse_document(json); }); };
  EXPECT_THAT(reason("[1]"), testing::HasSubstr("Document must be a JSON object"));
  EXPECT_THAT(reason(R"({"_id":1})"), testing::HasSubstr("illegal_docid: Document id must be a string"));
  EXPECT_THAT(reason(R"({"_id":""})"), testing::HasSubstr("illegal_docid"));
  EXPECT_THAT(reason(R"({"_id":"_x"})"),
              testing::HasSubstr("Only reserved document ids may start with underscore."));
  EXPECT_THAT(reason(R"({"_id":")" + std::string(kMaxDocumentIdBytes + 1, 'x') + "\"}"),
              testing::HasSubstr("too long"));
  EXPECT_THAT(reason(R"({"_rev":"x"})"), testing::HasSubstr("Invalid rev format"));
  EXPECT_THAT(reason(R"({"_rev":1})"), testing::HasSubstr("Invalid rev format"));
  EXPECT_THAT(reason(R"({"_zing":1})"), testing::HasSubstr("Bad special document member: _zing"));
  EXPECT_THAT(reason(R"({"_deleted":1})"), testing::HasSubstr("doc_validation"));
  for (const std::string_view revisions :
       {"1", "{}", R"({"start":"1","ids":["a"]})", R"({"start":1,"ids":"a"})", R"({"start":1,"ids":[]})",
        R"({"start":1,"ids":[1]})", R"({"start":1,"ids":["a","b"]})", R"({"start":-1,"ids":["a"]})"}) {
    EXPECT_THAT(reason(R"({"_revisions":)" + std::string(revisions) + "}"),
                testing::HasSubstr("doc_validation"));
  }
}

TEST_F(Documents, InvalidIdsAreRejected) {
  EXPECT_THAT(error_of([&] { check_document_id("a\xff"); }), testing::HasSubstr("illegal_docid"));
  // A zero byte takes two bytes in a key.
  EXPECT_THAT(error_of([&] { check_document_id(std::string(kMaxDocumentIdBytes, '\0')); }),
              testing::HasSubstr("too long"));
  check_document_id(std::string(kMaxDocumentIdBytes / 2, '\0'));
  EXPECT_FALSE(Revision::parse("1-\xff"));
  EXPECT_THAT(error_of([&] { parse_revisions(R"({"start":1,"ids":[")" + std::string(257, 'r') + "\"]}"); }),
              testing::HasSubstr("doc_validation"));
}

TEST_F(Documents, AValidationInAnotherLanguageIsRejectedForEachDocument) {
  const std::string validation = R"("language":"erlang","validate_doc_update":"fun")";
  const std::string refused = R"({"_id":"_design/d",)" + validation + "}";
  std::vector<IncomingDocument> documents{
      parse_document(R"({"_id":"a"})"), parse_document(refused),
      parse_document(R"({"_id":"_design/e","_deleted":true,)" + validation + "}")};
  const auto results = bulk_edit(*store, catalog, "db", documents, rng);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].id, documents[i].id);
    EXPECT_EQ(results[i].error ? results[i].error->status() : 200, i == 1 ? 501 : 200);
  }
  EXPECT_EQ(info().doc_count, 1);
  std::vector<IncomingDocument> revisions{parse_document(R"({"_id":"f","_rev":"1-f"})"),
                                          parse_document(refused)};
  revisions.back().revision = Revision{2, "r"};
  const auto rejected = bulk_replicate(*store, catalog, "db", revisions);
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].id, "_design/d");
  EXPECT_EQ(rejected[0].revision.to_string(), "2-r");
  EXPECT_EQ(rejected[0].error->status(), 501);
  EXPECT_EQ(info().doc_count, 2);
}

TEST_F(Documents, TheMaximumSizeOfADocumentCanBeSet) {
  catalog.set_max_document_bytes(11);
  put(R"({"_id":"a","n":12345})");
  EXPECT_EQ(edit(R"({"_id":"b","n":123456})").error->name(), "document_too_large");
  std::vector documents{parse_document(R"({"_id":"c","_rev":"1-c","n":123456})"),
                        parse_document(R"({"_id":"d","_rev":"1-d","n":12345})")};
  const auto refused = bulk_replicate(*store, catalog, "db", documents);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].error->status(), 413);
  EXPECT_EQ(info().doc_count, 2);
  const auto local = parse_document(R"({"_id":"_local/l","n":123456})");
  EXPECT_THAT(error_of([&] { with_db([&](auto& tx, const Database& db) { write_local(tx, db, local); }); }),
              testing::HasSubstr("document_too_large"));
}

}  // namespace
}  // namespace divan::docs
