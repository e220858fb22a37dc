// Replaced revisions, whose bodies are stored until a compaction.
#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/docs/compaction.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/purge.h"
#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct OldRevisions : DocsTest {
  // Writes the next revision of "a", with `n` and perhaps an attachment "x"; returns its number.
  std::string write(int n, std::string_view data = "") {
    const std::string attachments =
        data.empty() ? "" : fmt::format(R"(,"_attachments":{{"x":{{"data":"{}"}}}})", to_base64(data));
    const std::string rev = last_.empty() ? "" : fmt::format(R"(,"_rev":"{}")", last_);
    return last_ = put(fmt::format(R"({{"_id":"a","n":{}{}{}}})", n, rev, attachments));
  }

  // The `n` of a revision; "missing" if it is not stored.
  std::string n_of(const std::string& rev) {
    try {
      const std::string document = get("a", {}, rev);
      return std::string(json::member(document, "n").value_or("none"));
    } catch (const Error& error) { return error.reason(); }
  }

  std::size_t rows(Section section) {
    return with_db([&](auto& tx, const Database& db) {
      return tx.get_range(below(db.keys().section(section)), {}).rows.size();
    });
  }

  // Returns the number of changes that were searched.
  std::size_t compact_all() {
    std::size_t changes = 0;
    for (bool is_last = false; !is_last;) {
      const auto step = with_db([](auto& tx, const Database& db) { return compact(tx, db); });
      changes += step.changes;
      is_last = step.is_last;
    }
    return changes;
  }

 private:
  std::string last_;
};

TEST_F(OldRevisions, AreReadUntilACompaction) {
  const auto first = write(1), second = write(2);
  const auto deleted = put(fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true}})", second));
  EXPECT_EQ(n_of(first), "1");
  EXPECT_EQ(n_of(second), "2");
  EXPECT_EQ(n_of("1-f"), "missing");
  EXPECT_EQ(get("a", {.revs = true}, second),
            fmt::format(R"({{"_id":"a","_rev":"{}","n":2,"_revisions":{{"start":2,"ids":["{}","{}"]}}}})",
                        second, second.substr(2), first.substr(2)));
  EXPECT_THAT(
      get("a", {.revs_info = true}, deleted),
      HasSubstr(fmt::format(R"([{{"rev":"{}","status":"deleted"}},{{"rev":"{}","status":"available"}},)",
                            deleted, second)));
  EXPECT_EQ(info().old.bodies, 14);
  EXPECT_EQ(info().file_bytes(), 16);
  EXPECT_EQ(info().active_bytes(), 2);
  EXPECT_THAT(findings(), IsEmpty());

  const auto before = changes();
  EXPECT_EQ(compact_all(), 1u);
  EXPECT_EQ(n_of(first), "missing");
  EXPECT_EQ(n_of(second), "missing");
  EXPECT_EQ(get("a", {}, deleted), fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true}})", deleted));
  EXPECT_EQ(changes().front().sequence, before.front().sequence);
  EXPECT_EQ(rows(Section::body), 0u);
  EXPECT_EQ(info().old.bodies, 0);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, OfATombstoneThatWasReplaced) {
  const auto first = write(1);
  const auto deleted = put(fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true,"n":2}})", first));
  const auto third = put(R"({"_id":"a","n":3})");
  EXPECT_EQ(get("a", {}, deleted),
            fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true,"n":2}})", deleted));
  EXPECT_THAT(get("a", {.revs_info = true}, third),
              HasSubstr(fmt::format(R"({{"rev":"{}","status":"deleted"}})", deleted)));
}

TEST_F(OldRevisions, OnlyTheLastOnesAreStored) {
  catalog.set_max_old_revisions(3);
  std::vector<std::string> revisions;
  for (int n = 0; n < 6; ++n) revisions.push_back(write(n, "data of " + std::to_string(n)));
  std::vector<std::string> found;
  for (const auto& revision : revisions) found.push_back(n_of(revision));
  EXPECT_THAT(found, ElementsAre("missing", "missing", "2", "3", "4", "5"));
  EXPECT_EQ(rows(Section::body), 4u);
  EXPECT_EQ(info().old.attachments, 27);
  EXPECT_THAT(findings(), IsEmpty());
  // A lower limit takes effect at the next write.
  catalog.set_max_old_revisions(0);
  write(6);
  EXPECT_EQ(rows(Section::body), 1u);
  EXPECT_EQ(rows(Section::attachments), 0u);
  EXPECT_EQ(info().old.attachments, 0);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, AreForgottenWithTheirPaths) {
  with_db([](auto& tx, const Database& db) { write_config(tx, db, kRevsLimit, "2"); });
  const auto first = write(1), second = write(2), third = write(3);
  EXPECT_EQ(n_of(first), "missing");
  EXPECT_EQ(n_of(second), "2");
  EXPECT_EQ(n_of(third), "3");
  EXPECT_EQ(rows(Section::body), 2u);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, OfBranches) {
  replicate({R"({"_id":"a","_rev":"1-r","n":1})"});
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","r"]},"n":2})",
             R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"n":3})"});
  EXPECT_EQ(n_of("1-r"), "1");
  // Several generations at once: what is between has no body.
  replicate({R"({"_id":"a","_revisions":{"start":4,"ids":["e","d","b"]},"n":4})"});
  EXPECT_EQ(n_of("1-r"), "1");
  EXPECT_EQ(n_of("2-b"), "2");
  EXPECT_EQ(n_of("3-d"), "missing");
  // In one request.
  replicate({R"({"_id":"a","_revisions":{"start":3,"ids":["f","c"]},"n":5})",
             R"({"_id":"a","_revisions":{"start":4,"ids":["g","f"]},"n":6})"});
  EXPECT_EQ(n_of("2-c"), "3");
  EXPECT_EQ(n_of("3-f"), "5");
  EXPECT_EQ(n_of("4-g"), "6");
  EXPECT_THAT(findings(), IsEmpty());
  compact_all();
  EXPECT_EQ(n_of("2-b"), "missing");
  EXPECT_EQ(n_of("4-e"), "4");
  EXPECT_EQ(n_of("4-g"), "6");
  EXPECT_EQ(rows(Section::body), 2u);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, ManyInOneRequest) {
  catalog.set_max_old_revisions(3);
  const auto revision = [](int n) {
    return fmt::format(
        R"({{"_id":"a","_revisions":{{"start":{},"ids":["{}","{}"]}},"n":{},"_attachments":{{"x":{{"data":"{}"}}}}}})",
        n, n, n - 1, n, to_base64("data of " + std::to_string(n)));
  };
  std::vector<std::string> revisions;
  for (int n = 2; n < 8; ++n) revisions.push_back(revision(n));
  replicate(revisions);
  EXPECT_EQ(n_of("3-3"), "missing");
  EXPECT_EQ(n_of("4-4"), "4");
  EXPECT_EQ(n_of("7-7"), "7");
  EXPECT_EQ(rows(Section::body), 4u);
  EXPECT_EQ(info().old.attachments, 27);
  EXPECT_THAT(findings(), IsEmpty());
  // They count like others.
  replicate({revision(8)});
  EXPECT_EQ(n_of("4-4"), "missing");
  EXPECT_EQ(n_of("5-5"), "5");
  EXPECT_EQ(rows(Section::body), 4u);
  EXPECT_THAT(findings(), IsEmpty());
  compact_all();
  EXPECT_EQ(rows(Section::body), 1u);
  EXPECT_EQ(info().attachment_bytes, 9);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, ARevisionThatJoinsBranches) {
  replicate({R"({"_id":"a","_rev":"1-a","n":1})", R"({"_id":"a","_rev":"3-c","n":3})"});
  replicate({R"({"_id":"a","_revisions":{"start":4,"ids":["d","c","b","a"]},"n":4})"});
  EXPECT_EQ(n_of("1-a"), "1");
  EXPECT_EQ(n_of("3-c"), "3");
  EXPECT_EQ(n_of("4-d"), "4");
  EXPECT_THAT(findings(), IsEmpty());
}

// Replicated paths may contradict the known ones.
TEST_F(OldRevisions, AreForgottenIfTheNewPathDoesNotHaveThem) {
  replicate({R"({"_id":"a","_rev":"1-a","n":1})"});
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","a"]},"n":2})"});
  replicate({R"({"_id":"a","_revisions":{"start":3,"ids":["c","b","z"]},"n":3})"});
  EXPECT_EQ(n_of("1-a"), "missing");
  EXPECT_EQ(n_of("1-z"), "missing");
  EXPECT_EQ(n_of("2-b"), "2");
  EXPECT_EQ(rows(Section::body), 2u);
  EXPECT_THAT(findings(), IsEmpty());
  // In one request.
  replicate({R"({"_id":"b","_rev":"1-a"})", R"({"_id":"b","_revisions":{"start":2,"ids":["b","a"]},"n":2})",
             R"({"_id":"b","_revisions":{"start":3,"ids":["c","b","z"]},"n":3})"});
  EXPECT_EQ(rows(Section::body), 4u);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, AreForgottenOnTheWayInOneRequest) {
  replicate({R"({"_id":"a","_rev":"1-a","n":1})"});
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","a"]},"n":2})",
             R"({"_id":"a","_revisions":{"start":3,"ids":["c","b","z"]},"n":3})",
             R"({"_id":"a","_revisions":{"start":4,"ids":["d","c","b","z"]},"n":4})"});
  EXPECT_EQ(n_of("1-a"), "missing");
  EXPECT_EQ(n_of("2-b"), "2");
  EXPECT_EQ(rows(Section::body), 3u);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, TwoOfOneGeneration) {
  for (const char* revision :
       {R"({"_id":"a","_rev":"1-r","n":1})", R"({"_id":"a","_revisions":{"start":2,"ids":["a","r"]}})",
        R"({"_id":"a","_rev":"1-s","n":2})", R"({"_id":"a","_revisions":{"start":2,"ids":["b","s"]}})",
        R"({"_id":"a","_revisions":{"start":3,"ids":["b","b","s"]}})",
        R"({"_id":"a","_revisions":{"start":4,"ids":["e","b","a","r"]},"n":5})"}) {
    replicate({revision});
    EXPECT_THAT(findings(), IsEmpty()) << revision;
  }
  EXPECT_EQ(n_of("4-e"), "5");
  EXPECT_EQ(n_of("1-r"), "1");
  compact_all();
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, OfManyBranches) {
  std::string ancestors;
  for (int i = 0; i < 900; ++i) ancestors += fmt::format(R"(,"{:032x}")", i);
  constexpr int kLeaves = 130;
  for (int i = 0; i < kLeaves; ++i) {
    replicate({fmt::format(R"({{"_id":"a","_revisions":{{"start":2000,"ids":["{:032x}"{}]}},"n":1}})",
                           10'000 + i, ancestors)});
    replicate(
        {fmt::format(R"({{"_id":"a","_revisions":{{"start":2001,"ids":["{:032x}","{:032x}"{}]}},"n":2}})", i,
                     10'000 + i, ancestors)});
  }
  EXPECT_EQ(info().old.bodies, 7 * kLeaves);
  EXPECT_EQ(with_db([](auto& tx, const Database& db) { return compact(tx, db).is_last; }), false);
  compact_all();
  EXPECT_EQ(info().old.bodies, 0);
  EXPECT_EQ(rows(Section::body), std::size_t{kLeaves});
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, WhatIsShownWithThem) {
  const auto first = write(1), second = write(2), third = write(3);
  EXPECT_EQ(
      get("a", {.revs_info = true, .conflicts = true}, second),
      fmt::format(R"({{"_id":"a","_rev":"{0}","n":2,"_revs_info":[{{"rev":"{0}","status":"available"}},)"
                  R"({{"rev":"{1}","status":"available"}}]}})",
                  second, first));
  replicate({R"({"_id":"a","_rev":"3-f"})"});
  EXPECT_THAT(get("a", {.conflicts = true}, second), HasSubstr("\"_conflicts\":[\"3-f\"]"));
}

TEST_F(OldRevisions, UsersHaveNone) {
  store->run([&](kv::Transaction& tx) { catalog.create(tx, kUsersDatabase); });
  std::string rev;
  for (int n = 0; n < 3; ++n) {
    std::vector documents{parse_document(
        fmt::format(R"({{"_id":"u","n":{}{}}})", n, rev.empty() ? "" : fmt::format(R"(,"_rev":"{}")", rev)))};
    rev = bulk_edit(*store, catalog, kUsersDatabase, documents, rng).front().revision.to_string();
  }
  store->run([&](kv::Transaction& tx) {
    const auto users = catalog.open(tx, kUsersDatabase);
    EXPECT_EQ(tx.get_range(below(users.keys().section(Section::body)), {}).rows.size(), 1u);
  });
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, ACompactionEndsAtTheGivenSequence) {
  write(1);
  write(2);
  put(R"({"_id":"other"})");
  const auto end = changes().front().sequence;
  const auto step =
      with_db([&](auto& tx, const Database& db) { return compact(tx, db, {.changes = 5, .end = end}); });
  EXPECT_EQ(step.changes, 1u);
  EXPECT_TRUE(step.is_last);
}

TEST_F(OldRevisions, AttachmentsThatTheSuccessorHas) {
  const auto first = write(1, "hello");
  const auto second = put(fmt::format(R"({{"_id":"a","_rev":"{}","_attachments":{{"y":{{"data":"{}"}}}}}})",
                                      first, to_base64("hello")));
  EXPECT_EQ(info().old.attachments, 0);
  EXPECT_EQ(info().attachment_bytes, 5);
  const auto deleted = put(fmt::format(R"({{"_id":"a","_rev":"{}","_deleted":true}})", second));
  EXPECT_EQ(info().old.attachments, 5);
  EXPECT_EQ(info().active_bytes(), 2);
  EXPECT_THAT(findings(), IsEmpty());
  compact_all();
  EXPECT_EQ(info().attachment_bytes, 0);
  EXPECT_EQ(rows(Section::attachments), 0u);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, APurgeRemovesThem) {
  const auto first = write(1, "hello"), second = write(2);
  const auto database = with_db([](auto&, const Database& db) { return db; });
  const std::vector<PurgeRequest> requests{{"a", {parse_revision(second)}}};
  purge(*store, database, requests);
  EXPECT_EQ(n_of(first), "missing");
  EXPECT_EQ(rows(Section::body), 0u);
  EXPECT_EQ(rows(Section::attachments), 0u);
  EXPECT_EQ(info().file_bytes(), 0);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, APurgeOfAConflictKeepsThoseOfTheWinner) {
  replicate({R"({"_id":"a","_rev":"1-r","n":1})"});
  replicate(
      {R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"n":2})", R"({"_id":"a","_rev":"2-b","n":3})"});
  const auto database = with_db([](auto&, const Database& db) { return db; });
  purge(*store, database, std::vector<PurgeRequest>{{"a", {parse_revision("2-b")}}});
  EXPECT_EQ(n_of("1-r"), "1");
  EXPECT_EQ(n_of("2-c"), "2");
  EXPECT_EQ(n_of("2-b"), "missing");
  EXPECT_THAT(findings(), IsEmpty());
  compact_all();
  EXPECT_EQ(rows(Section::body), 1u);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, ACompactionContinuesWhereTheLastOneEnded) {
  for (int i = 0; i < 2'500; ++i) put(fmt::format(R"({{"_id":"new{}"}})", i));
  write(1);
  write(2);
  EXPECT_EQ(with_db([](auto& tx, const Database& db) { return compact(tx, db).is_last; }), false);
  EXPECT_EQ(with_db([](auto& tx, const Database& db) { return count_uncompacted(tx, db, 9'999); }), 1'501);
  EXPECT_EQ(compact_all(), 1'501u);
  EXPECT_EQ(compact_all(), 0u);
  write(3);
  EXPECT_EQ(info().old.bodies, 7);
  EXPECT_EQ(compact_all(), 1u);
  EXPECT_EQ(info().old.bodies, 0);
}

TEST_F(OldRevisions, AWriterConflictsWithACompaction) {
  write(1);
  const auto second = write(2);
  const auto compaction = store->begin();
  compact(*compaction, catalog.open(*compaction, "db"));
  write(3);
  EXPECT_THROW(compaction->commit(), kv::Error);
  EXPECT_EQ(n_of(second), "2");
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(OldRevisions, ACompactionOfADatabaseThatWasCreatedAgain) {
  const auto old = with_db([](auto&, const Database& db) { return db; });
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  EXPECT_THAT(error_of([&] { store->run([&](kv::Transaction& tx) { compact(tx, old); }); }),
              HasSubstr("exist"));
}

}  // namespace
}  // namespace divan::docs
