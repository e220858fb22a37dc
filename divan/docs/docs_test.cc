#include <rapidcheck/gtest.h>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/changes.h"
#include "divan/docs/local.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::docs {
namespace {

struct Docs : testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  SeededRng rng{1};
  Catalog catalog{bus, clock};

  void SetUp() override {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }

  template <class Fn>
  auto with_db(Fn&& fn) {
    return store->run([&](kv::Transaction& tx) { return fn(tx, catalog.open(tx, "db")); });
  }

  WriteResult edit(std::string_view json) {
    std::vector documents{parse_document(json::compact(json))};
    return bulk_edit(*store, catalog, "db", documents, rng).front();
  }

  std::string put(std::string_view json) {
    const auto result = edit(json);
    EXPECT_FALSE(result.error) << result.error->what();
    return result.revision.to_string();
  }

  void replicate(std::vector<std::string> jsons) {
    std::vector<IncomingDocument> documents;
    for (const auto& json : jsons) documents.push_back(parse_document(json::compact(json)));
    bulk_replicate(*store, catalog, "db", documents);
  }

  std::string get(std::string_view id, const DocumentOptions& options = {}, std::string_view rev = {}) {
    return with_db([&](auto& tx, const Database& db) {
      const auto found =
          find_document(tx, db, id, rev.empty() ? std::nullopt : std::optional(parse_revision(rev)));
      std::string out;
      append_document(out, id, found.revision(), found.body, found.tree, options);
      return out;
    });
  }

  std::string error_of(const std::function<void()>& fn) {
    try {
      fn();
    } catch (const Error& error) { return error.what(); }
    return "no error";
  }

  std::vector<Change> changes() {
    return with_db([&](auto& tx, const Database& db) {
      std::vector<Change> all;
      visit_changes(tx, db, {}, [&](const Change& change) {
        all.push_back(change);
        return true;
      });
      return all;
    });
  }

  DatabaseInfo info() {
    return with_db([&](auto& tx, const Database& db) { return read_info(tx, db); });
  }
};

TEST_F(Docs, DatabaseNames) {
  for (const std::string_view name : {"a", "a0_$()+-/z", "_users", "_replicator"}) check_database_name(name);
  for (const std::string& name : {std::string(), std::string("A"), std::string("0a"), std::string("_a"),
                                  std::string("a b"), std::string("a\xc3\xbc")}) {
    EXPECT_THAT(error_of([&] { check_database_name(name); }), testing::HasSubstr("illegal_database_name"));
  }
  check_database_name(std::string(238, 'a'));
  EXPECT_THAT(error_of([&] { check_database_name(std::string(239, 'a')); }),
              testing::HasSubstr("database_name_too_long"));
}

TEST_F(Docs, DatabasesAreCreatedListedAndRemoved) {
  const auto list = [&](const Catalog::ListOptions& options) {
    return store->run([&](kv::Transaction& tx) { return catalog.list(tx, options); });
  };
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "c"); });
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "d/e"); });
  EXPECT_EQ(list({}), (std::vector<std::string>{"c", "d/e", "db"}));
  EXPECT_EQ(list({.start_key = "d", .end_key = "db", .limit = 1, .skip = 1}),
            (std::vector<std::string>{"db"}));
  EXPECT_EQ(list({.start_key = "d/e", .descending = true}), (std::vector<std::string>{"d/e", "c"}));
  EXPECT_EQ(list({.start_key = "x", .end_key = "a"}), (std::vector<std::string>{}));
  EXPECT_THAT(error_of([&] { store->run([&](kv::Transaction& tx) { catalog.create(tx, "c"); }); }),
              testing::HasSubstr("file_exists"));
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "c"); });
  EXPECT_THAT(error_of([&] { store->run([&](kv::Transaction& tx) { catalog.remove(tx, "c"); }); }),
              testing::HasSubstr("not_found"));
}

TEST_F(Docs, ADatabaseThatIsMadeAnewIsEmpty) {
  put(R"({"_id":"a"})");
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  EXPECT_THAT(error_of([&] { get("a"); }), testing::HasSubstr("Database does not exist"));
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  EXPECT_THAT(error_of([&] { get("a"); }), testing::HasSubstr("missing"));
  EXPECT_EQ(info().doc_count, 0);
}

TEST_F(Docs, OfRepeatedMembersTheLastOneStands) {
  const auto document =
      parse_document(R"({"_id":"x","n":1,"_rev":"1-a","n":{"a":1,"a":2},"_rev":"2-b","_id":"y"})");
  EXPECT_EQ(document.id, "y");
  EXPECT_EQ(document.revision->to_string(), "2-b");
  EXPECT_EQ(document.body, R"({"n":{"a":2}})");
}

TEST_F(Docs, WhatAReplicatorNotesIsStored) {
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

TEST_F(Docs, ParseTakesTheSpecialMembersOut) {
  const auto document = parse_document(
      R"({"z":1.50,"_id":"x","\u005frev":"3-abc","a":{"_id":1},"_deleted":true,"_conflicts":["1-a"],"y":2})");
  EXPECT_EQ(document.id, "x");
  EXPECT_EQ(document.revision->to_string(), "3-abc");
  EXPECT_TRUE(document.deleted);
  EXPECT_EQ(document.body, R"({"z":1.50,"a":{"_id":1},"y":2})");
}

TEST_F(Docs, ParseRefusesWhatIsNoDocument) {
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

TEST_F(Docs, ADocumentsLife) {
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

TEST_F(Docs, TheSameEditGivesTheSameRevision) {
  const auto rev = put(R"({"_id":"a","n":1})");
  EXPECT_EQ(put(R"({"_id":"b", "n": 1})"), rev);
}

TEST_F(Docs, ReplicatedRevisionsMakeATree) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","r"]},"v":"b"})",
             R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"c"})",
             R"({"_id":"a","_revisions":{"start":3,"ids":["d","b","r"]},"_deleted":true})"});
  EXPECT_EQ(get("a", {.conflicts = true, .deleted_conflicts = true}),
            R"({"_id":"a","_rev":"2-c","v":"c","_deleted_conflicts":["3-d"]})");
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_EQ(info().doc_count, 1);
  // Known already: nothing happens.
  const auto before = changes().front().sequence;
  replicate({R"({"_id":"a","_rev":"2-b"})", R"({"_id":"a","_rev":"2-c"})"});
  EXPECT_EQ(changes().front().sequence, before);
  // A conflict, and its end.
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

TEST_F(Docs, AChangeToALosingRevisionMovesTheDocumentButKeepsItsWinner) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["z","r"]},"v":"winner"})"});
  replicate({R"({"_id":"b","_rev":"1-x","v":"other"})"});
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"loser"})"});
  const auto all = changes();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "b");
  EXPECT_EQ(all[1].id, "a");
  EXPECT_EQ(all[1].winner.to_string(), "2-z");
  const auto bodies = with_db([&](auto& tx, const Database& db) { return read_bodies(tx, db, all); });
  EXPECT_EQ(bodies, (std::vector<std::string>{R"({"v":"other"})", R"({"v":"winner"})"}));
}

TEST_F(Docs, BulkKeepsTheOrderAndSparesTheOthersAConflict) {
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

TEST_F(Docs, LargeDocumentsAreCutIntoChunks) {
  const std::string text(3'000'000, 'x');
  const auto rev = put(R"({"_id":"a","t":")" + text + "\"}");
  EXPECT_EQ(get("a").size(), text.size() + rev.size() + 28);
  put(R"({"_id":"a","_rev":")" + rev + "\"}");
  const auto rows = with_db([&](auto& tx, const Database& db) {
    return tx.get_range(below(db.keys().room(Room::body))).rows.size();
  });
  EXPECT_EQ(rows, 0u);
  std::vector documents{parse_document(R"({"_id":"b","t":")" + std::string(kMaxDocumentBytes, 'x') + "\"}")};
  const auto result = bulk_edit(*store, catalog, "db", documents, rng).front();
  EXPECT_EQ(result.error->status(), 413);
  EXPECT_EQ(result.error->name(), "document_too_large");
}

TEST_F(Docs, ManyLargeDocumentsGoIntoSeveralTransactions) {
  std::vector<IncomingDocument> documents;
  for (int i = 0; i < 10; ++i) {
    documents.push_back(parse_document(R"({"t":")" + std::string(3'000'000, 'x') + "\"}"));
  }
  for (const auto& result : bulk_edit(*store, catalog, "db", documents, rng)) EXPECT_FALSE(result.error);
  EXPECT_EQ(info().doc_count, 10);
}

TEST_F(Docs, DocumentsAreListedInOrder) {
  for (const std::string id : {"a", "b", "c", "d"}) put(R"({"_id":")" + id + "\"}");
  put(R"({"_id":"a\u0000b"})");
  replicate(
      {R"({"_id":"b","_rev":"2-x"})", R"({"_id":"c","_revisions":{"start":2,"ids":["x"]},"_deleted":true})"});
  put(R"({"_id":"d","_rev":")" + put(R"({"_id":"e"})") + R"(","_deleted":true})");
  const auto ids = [&](const DocumentRange& range, std::size_t limit = 99) {
    return with_db([&](auto& tx, const Database& db) {
      std::vector<std::string> found;
      visit_documents(tx, db, range, [&](const std::string& id, const Leaf& winner) {
        EXPECT_FALSE(winner.deleted);
        found.push_back(id + (winner.path.generation == 2 ? "2" : ""));
        return found.size() < limit;
      });
      return found;
    });
  };
  const std::string nul("a\0b", 3);
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids({}), (Ids{"a", nul, "b2", "c", "e"}));
  EXPECT_EQ(ids({.descending = true}), (Ids{"e", "c", "b2", nul, "a"}));
  EXPECT_EQ(ids({.start_id = "b", .end_id = "c"}), (Ids{"b2", "c"}));
  EXPECT_EQ(ids({.start_id = "a", .end_id = "a"}), (Ids{"a"}));
  EXPECT_EQ(ids({.start_id = "b", .end_id = "c", .inclusive_end = false}), (Ids{"b2"}));
  EXPECT_EQ(ids({.start_id = "c", .end_id = "a", .descending = true}), (Ids{"c", "b2", nul, "a"}));
  EXPECT_EQ(ids({.start_id = "c", .end_id = "a", .inclusive_end = false, .descending = true}),
            (Ids{"c", "b2", nul}));
  EXPECT_EQ(ids({.start_id = "c", .end_id = "b"}), (Ids{}));
  EXPECT_EQ(ids({}, 2), (Ids{"a", nul}));
}

TEST_F(Docs, ChangesHaveOneRowADocumentInTheOrderOfTheLastChange) {
  const auto rev = put(R"({"_id":"a"})");
  put(R"({"_id":"b"})");
  put(R"({"_id":"a","_rev":")" + rev + R"(","n":1})");
  const auto all = changes();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "b");
  EXPECT_EQ(all[1].id, "a");
  EXPECT_LT(all[0].sequence, all[1].sequence);
  EXPECT_EQ(info().update_seq, all[1].sequence);
  EXPECT_EQ(parse_sequence(to_sequence(all[1].sequence)), all[1].sequence);
  with_db([&](auto& tx, const Database& db) {
    EXPECT_EQ(count_changes(tx, db, {}, 100), 2);
    EXPECT_EQ(count_changes(tx, db, all[0].sequence, 100), 1);
    EXPECT_EQ(count_changes(tx, db, {}, 1), 1);
  });
}

TEST_F(Docs, BodiesAreReadAsFarAsWanted) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["z","r"]},"v":"winner"})"});
  for (const std::string id : {"b", "c", "d"}) put(R"({"_id":")" + id + R"(","t":")" + id + "\"}");
  put(R"({"_id":"e","t":")" + std::string(200'000, 'e') + "\"}");
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"loser"})"});
  const auto all = changes();  // b c d e a
  const auto count = [&](std::size_t max_bytes) {
    return with_db([&](auto& tx, const Database& db) {
      const auto bodies = read_bodies(tx, db, all, max_bytes);
      for (std::size_t i = 0; i < bodies.size() && i < 3; ++i) {
        EXPECT_EQ(bodies[i], R"({"t":")" + all[i].id + "\"}");
      }
      if (bodies.size() > 3) { EXPECT_EQ(bodies[3].size(), 200'008u); }
      if (bodies.size() > 4) { EXPECT_EQ(bodies[4], R"({"v":"winner"})"); }
      return bodies.size();
    });
  };
  EXPECT_EQ(count(1), 1u);
  EXPECT_EQ(count(9), 1u);
  EXPECT_EQ(count(10), 2u);
  EXPECT_EQ(count(27), 3u);
  EXPECT_EQ(count(28), 4u);
  EXPECT_EQ(count(200'034), 4u);
  EXPECT_EQ(count(200'036), 5u);
  EXPECT_EQ(count(SIZE_MAX), 5u);
}

// Forwards and backwards, whatever of the documents lies where, and however many bytes are wanted.
TEST_F(Docs, BodiesAreReadInTheOrderOfTheChanges) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["z","r"]},"v":"winner"})"});
  put(R"({"_id":"b","t":"b"})");
  put(R"({"_id":"empty"})");
  put(R"({"_id":"large","t":")" + std::string(250'000, 'l') + std::string(50'000, 'm') + "\"}");
  const auto gone = put(R"({"_id":"gone","t":"gone"})");
  put(R"({"_id":"c","t":"c"})");
  put(R"({"_id":"gone","_rev":")" + gone + R"(","_deleted":true})");
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"loser"})"});
  put(R"({"_id":"d","t":"d"})");
  auto all = changes();
  for (const bool reverse : {false, true}) {
    if (reverse) std::reverse(all.begin(), all.end());
    with_db([&](auto& tx, const Database& db) {
      std::vector<std::string> one_by_one;
      for (const auto& change : all)
        one_by_one.push_back(read_body(tx, db, change.body_sequence, change.chunks));
      for (const std::size_t max_bytes : {1u, 12u, 30u, 300'000u, 1'000'000u}) {
        for (std::size_t first = 0; first < all.size(); ++first) {
          const auto bodies = read_bodies(tx, db, std::span(all).subspan(first), max_bytes);
          std::size_t bytes = 0;
          for (std::size_t i = 0; i < bodies.size(); ++i) {
            EXPECT_LT(bytes, max_bytes);
            EXPECT_EQ(bodies[i], one_by_one[first + i]) << all[first + i].id;
            bytes += bodies[i].size();
          }
          EXPECT_TRUE(bytes >= max_bytes || first + bodies.size() == all.size());
        }
      }
    });
  }
}

TEST_F(Docs, SequencesOfStrangersAreRefused) {
  for (const std::string_view text :
       {"", "x", "-1", "1-", "1-zz", "1-00000000000000020000ffff", "1x-", "now"}) {
    EXPECT_THAT(error_of([&] { parse_sequence(text); }), testing::HasSubstr("Malformed sequence")) << text;
  }
  EXPECT_EQ(parse_sequence("0"), kv::Versionstamp());
  EXPECT_LT(parse_sequence("6-000000000000000600000001"), parse_sequence("6"));
  EXPECT_LT(parse_sequence("6"), parse_sequence("7-000000000000000700000000"));
}

TEST_F(Docs, LocalDocuments) {
  const auto write = [&](std::string_view json) {
    return with_db([&](auto& tx, const Database& db) { return write_local(tx, db, parse_document(json)); });
  };
  EXPECT_EQ(write(R"({"_id":"_local/a","n":1})"), 1);
  EXPECT_THAT(error_of([&] { write(R"({"_id":"_local/a","n":2})"); }), testing::HasSubstr("conflict"));
  EXPECT_EQ(write(R"({"_id":"_local/a","_rev":"0-1","t":")" + std::string(200'000, 'x') + "\"}"), 2);
  EXPECT_EQ(write(R"({"_id":"_local/b","n":1})"), 1);
  EXPECT_TRUE(changes().empty());
  with_db([&](auto& tx, const Database& db) {
    EXPECT_EQ(read_local(tx, db, "_local/a")->body.size(), 200'000u + 8);
    EXPECT_EQ(read_local(tx, db, "_local/a")->revision, 2);
    std::string ids;
    const auto visit = [&](const std::string& id, const LocalDocument& document) {
      ids += id + "@" + std::to_string(document.revision) + "/" + std::to_string(document.body.size()) + " ";
      return true;
    };
    visit_locals(tx, db, {}, visit);
    EXPECT_EQ(ids, "_local/a@2/200008 _local/b@1/7 ");
    ids.clear();
    visit_locals(tx, db, {.descending = true}, visit);
    EXPECT_EQ(ids, "_local/b@1/7 _local/a@2/200008 ");
  });
  EXPECT_EQ(write(R"({"_id":"_local/a","_rev":"0-2","_deleted":true})"), 0);
  EXPECT_THAT(error_of([&] { write(R"({"_id":"_local/a","_deleted":true})"); }),
              testing::HasSubstr("not_found"));
}

// All ranges of a few ids and of what stands before, between and behind them, against a filter of the list.
TEST_F(Docs, LocalDocumentsOfARange) {
  const std::vector<std::string> all = {"_local/a", "_local/aa", "_local/b"};
  for (const auto& id : all) {
    with_db([&](auto& tx, const Database& db) {
      return write_local(tx, db, parse_document(R"({"_id":")" + id + "\"}"));
    });
  }
  const std::vector<std::optional<std::string>> bounds = {
      std::nullopt, "", "_local/", "_local/a", "_local/ab", "_local/b", "_local/c", "_local0", "z"};
  for (const auto& start : bounds) {
    for (const auto& end : bounds) {
      for (const int flags : {0, 1, 2, 3}) {
        const DocumentRange range{start, end, (flags & 1) != 0, (flags & 2) != 0};
        std::vector<std::string> expected, found;
        for (const auto& id : all) {
          const auto& lower = range.descending ? end : start;
          const auto& upper = range.descending ? start : end;
          if (lower && id < *lower) continue;
          if (upper && id > *upper) continue;
          if (!range.inclusive_end && end == id) continue;
          expected.push_back(id);
        }
        if (range.descending) std::ranges::reverse(expected);
        with_db([&](auto& tx, const Database& db) {
          visit_locals(tx, db, range, [&](const std::string& id, const LocalDocument&) {
            found.push_back(id);
            return true;
          });
        });
        EXPECT_EQ(found, expected) << start.value_or("-") << " " << end.value_or("-") << " " << flags;
      }
    }
  }
}

TEST_F(Docs, EventsComeAfterTheCommitOnceForABatch) {
  auto subscription = bus.subscribe(events::database_channel("db"));
  std::vector<IncomingDocument> documents{parse_document(R"({"_id":"a"})"),
                                          parse_document(R"({"_id":"_design/x"})")};
  bulk_edit(*store, catalog, "db", documents, rng);
  std::vector<std::string> kinds;
  while (auto message = subscription.try_next()) kinds.push_back(message->event->kind + message->event->id);
  EXPECT_EQ(kinds, (std::vector<std::string>{"updated", "ddoc_updated_design/x"}));
  edit(R"({"_id":"a"})");  // a conflict
  EXPECT_FALSE(subscription.try_next());
}

TEST_F(Docs, EveryKindOfChangeIsAnEvent) {
  auto subscription = bus.subscribe(events::database_channel("other"));
  const auto kinds = [&] {
    std::vector<std::string> found;
    while (auto message = subscription.try_next()) {
      EXPECT_EQ(message->event->database, "other");
      found.push_back(message->event->kind + " " + message->event->id);
    }
    return found;
  };
  using Kinds = std::vector<std::string>;
  const auto write_local_too = [&](kv::Transaction& tx) {
    auto document = parse_document(R"({"_id":"_local/a"})");
    write_local(tx, catalog.open(tx, "other"), document);
  };
  store->run([&](kv::Transaction& tx) {
    catalog.create(tx, "other");
    EXPECT_EQ(kinds(), Kinds()) << "before the commit";
  });
  EXPECT_EQ(kinds(), Kinds{"created "});
  store->run(write_local_too);
  EXPECT_EQ(kinds(), Kinds{"local_updated _local/a"});
  // What is not committed has not happened.
  const auto fails = [&](kv::Transaction& tx) {
    catalog.remove(tx, "other");
    throw Error(500, "on_purpose", "");
  };
  EXPECT_THROW(store->run(fails), Error);
  EXPECT_EQ(kinds(), Kinds());
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "other"); });
  EXPECT_EQ(kinds(), Kinds{"deleted "});
}

TEST_F(Docs, HooksRunInTheTransaction) {
  std::vector<std::string> seen;
  catalog.on_change(
      [&](kv::Transaction& tx, const Database& db, events::DatabaseEvent kind, std::string_view) {
        seen.push_back(db.name() + " " + std::string(events::kind_name(kind)));
        tx.set("mark", "x");
      });
  catalog.on_design_check([](std::string_view, std::string_view body, const Checkpoint&) {
    if (body == R"({"bad":1})") throw Error(400, "invalid_design_doc", "No.");
  });
  put(R"({"_id":"a"})");
  EXPECT_EQ(seen, (std::vector<std::string>{"db updated"}));
  EXPECT_EQ(store->run([](kv::Transaction& tx) { return tx.get("mark"); }), "x");
  EXPECT_EQ(edit(R"({"_id":"_design/x","bad":1})").error->name(), "invalid_design_doc");
  EXPECT_FALSE(edit(R"({"_id":"_design/x","good":1})").error);
}

// Functions are compiled, which is slow, outside of the transaction, so that its conflicts do not repeat it.
TEST_F(Docs, ADesignDocumentIsCheckedOnceHoweverOftenItsTransactionIsTried) {
  int checks = 0, writes = 0;
  const auto meddle = [&] {
    with_db([](auto& tx, const Database& db) { write_config(tx, db, "revs_limit", "1000"); });
  };
  catalog.on_design_check([&](std::string_view, std::string_view, const Checkpoint&) {
    ++checks;
    meddle();
  });
  catalog.on_design_document([&](auto&, const Database&, std::string_view, std::string_view) {
    if (++writes == 1) meddle();
  });
  put(R"({"_id":"_design/x"})");
  EXPECT_EQ(checks, 1);
  EXPECT_EQ(writes, 2);
  EXPECT_EQ(edit(R"({"_id":"_design/x"})").error->name(), "conflict");
  EXPECT_EQ(checks, 2);
  replicate({R"({"_id":"_design/y","_rev":"1-a"})"});
  EXPECT_EQ(checks, 2) << "elsewhere it was good";
  // Not for a database that is not there.
  std::vector documents{parse_document(R"({"_id":"_design/z"})")};
  EXPECT_THROW(bulk_edit(*store, catalog, "none", documents, rng), Error);
  EXPECT_EQ(checks, 2);
}

TEST_F(Docs, ACheckOfDesignDocumentsEndsWhenNobodyWaitsForIt) {
  int checks = 0;
  catalog.on_design_check([&](std::string_view, std::string_view, const Checkpoint& checkpoint) {
    checkpoint();
    ++checks;
  });
  std::vector documents{parse_document(R"({"_id":"a"})"), parse_document(R"({"_id":"_design/x"})"),
                        parse_document(R"({"_id":"_design/y"})")};
  const Checkpoint gone = [&] {
    if (checks == 1) throw Error(499, "client_closed_request", "It is gone.");
  };
  EXPECT_THAT(error_of([&] { bulk_edit(*store, catalog, "db", documents, rng, gone); }),
              testing::HasSubstr("client_closed_request"));
  EXPECT_EQ(info().doc_count, 0);
  EXPECT_EQ(checks, 1);
}

TEST_F(Docs, WhatIsNotThereYetIsRefusedForEachDocument) {
  const std::string attachment = R"("_attachments":{"a":{"content_type":"text/plain","data":"aGVsbG8="}})";
  const std::string stub = R"("_attachments":{"a":{"stub":true,"revpos":1,"digest":"md5-x","length":5}})";
  const std::string validation = R"("validate_doc_update":"function () {}")";
  const std::vector<std::string> refused = {R"({"_id":"b",)" + attachment + "}",
                                            R"({"_id":"c",)" + stub + "}",
                                            R"({"_id":"_design/d",)" + validation + "}"};
  std::vector<IncomingDocument> documents{parse_document(R"({"_id":"a","_attachments":{}})")};
  for (const auto& text : refused) documents.push_back(parse_document(text));
  documents.push_back(parse_document(R"({"_id":"_design/e","_deleted":true,)" + validation + "}"));
  const auto results = bulk_edit(*store, catalog, "db", documents, rng);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].id, documents[i].id);
    if (i >= 1 && i <= 3) {
      ASSERT_TRUE(results[i].error) << i;
      EXPECT_EQ(results[i].error->status(), 501);
    } else {
      EXPECT_FALSE(results[i].error) << i;
    }
  }
  EXPECT_EQ(info().doc_count, 1);
  std::vector<IncomingDocument> revisions{parse_document(R"({"_id":"f","_rev":"1-f"})")};
  for (const auto& text : refused) {
    revisions.push_back(parse_document(text));
    revisions.back().revision = Revision{2, "r"};
  }
  const auto told = bulk_replicate(*store, catalog, "db", revisions);
  ASSERT_EQ(told.size(), 3u);
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].id, revisions[i + 1].id);
    EXPECT_EQ(told[i].revision.to_string(), "2-r");
    EXPECT_EQ(told[i].error->status(), 501);
  }
  EXPECT_EQ(info().doc_count, 2);
  const auto local = parse_document(R"({"_id":"_local/l",)" + stub + "}");
  EXPECT_THAT(error_of([&] { with_db([&](auto& tx, const Database& db) { write_local(tx, db, local); }); }),
              testing::HasSubstr("not_implemented"));
}

// One that is there already, from before, is read, replaced and deleted.
TEST_F(Docs, AStoredDesignDocumentWithAValidationStays) {
  const auto old = parse_document(R"({"_id":"_design/d","validate_doc_update":"function () {}","n":1})");
  std::string rev;
  with_db([&](auto& tx, const Database& db) {
    Writer writer(tx, db);
    rev = writer.edit(old).revision.to_string();
    writer.finish();
  });
  EXPECT_THAT(get("_design/d"), testing::HasSubstr("validate_doc_update"));
  EXPECT_EQ(edit(R"({"_id":"_design/d","_rev":")" + rev + R"(","validate_doc_update":"f"})").error->status(),
            501);
  put(R"({"_id":"_design/d","_rev":")" + rev + R"(","_deleted":true})");
}

TEST_F(Docs, TheLargestDocumentCanBeSet) {
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

TEST_F(Docs, IdsThatCouldNotBeReadBackAreRefused) {
  EXPECT_THAT(error_of([&] { check_document_id("a\xff"); }), testing::HasSubstr("illegal_docid"));
  // In a key a zero byte takes two.
  EXPECT_THAT(error_of([&] { check_document_id(std::string(kMaxDocumentIdBytes, '\0')); }),
              testing::HasSubstr("too long"));
  check_document_id(std::string(kMaxDocumentIdBytes / 2, '\0'));
  EXPECT_FALSE(Revision::parse("1-\xff"));
  EXPECT_THAT(error_of([&] { parse_revisions(R"({"start":1,"ids":[")" + std::string(257, 'r') + "\"]}"); }),
              testing::HasSubstr("doc_validation"));
}

TEST_F(Docs, AHistoryIsCutToWhatTheStoreTakes) {
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

TEST_F(Docs, ARevisionLimitIsAtLeastOne) {
  with_db([](auto& tx, const Database& db) { write_config(tx, db, "revs_limit", "0"); });
  const auto rev = put(R"({"_id":"a"})");
  EXPECT_EQ(get("a", {}, rev), R"({"_id":"a","_rev":")" + rev + "\"}");
}

TEST_F(Docs, ADeletedDocumentIsOnlyMadeAnew) {
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

TEST_F(Docs, EditsGoOnBehindTheHighestReplicatedGeneration) {
  replicate({R"({"_id":"a","_rev":"2147483648-x"})"});
  const std::string edited = put(R"({"_id":"a","_rev":"2147483648-x"})");
  EXPECT_THAT(edited, testing::StartsWith("2147483649-"));
  EXPECT_THAT(get("a", {}, edited), testing::HasSubstr(edited));
  EXPECT_THAT(put(R"({"_id":"a","_deleted":true,"_rev":")" + edited + R"("})"),
              testing::StartsWith("2147483650-"));
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_THAT(error_of([&] { replicate({R"({"_id":"b","_rev":"2147483649-x"})"}); }),
              testing::HasSubstr("Invalid rev format"));
  // There is an end.
  Leaf last;
  last.path = {UINT32_MAX, {"z"}};
  last.body_bytes = 2;
  with_db([&](auto& tx, const Database& db) {
    tx.set(db.keys().leaf("c", false, last.revision()), encode_leaf(last));
  });
  const auto error = edit(R"({"_id":"c","_rev":"4294967295-z"})").error;
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), testing::HasSubstr("has the highest number"));
}

TEST_F(Docs, APathThatJoinsTwoLeavesReplacesBoth) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["b","r"]}})"});
  replicate({R"({"_id":"a","_rev":"3-c","v":1})"});
  replicate({R"({"_id":"a","_revisions":{"start":4,"ids":["d","c","b","r"]}})"});
  EXPECT_EQ(get("a", {.revs = true, .conflicts = true}),
            R"({"_id":"a","_rev":"4-d","_revisions":{"start":4,"ids":["d","c","b","r"]}})");
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_EQ(info().body_bytes, 2);
}

TEST_F(Docs, LargeConflictsGoIntoSeveralTransactions) {
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

TEST_F(Docs, TwoWritersOfOneDocumentNeverBothWin) {
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

TEST_F(Docs, DamagedLocalDocumentsAndChangesAreRefused) {
  const auto put_row = [&](Room room, std::string_view key, std::string_view value) {
    with_db([&](auto& tx, const Database& db) { tx.set(db.keys().room(room) + std::string(key), value); });
  };
  std::string name, last;
  kv::tuple::Packer(name).string("a").integer(0);
  kv::tuple::Packer(last).integer(INT64_MAX);
  for (const std::string& value : {last + "{}", std::string("{}"), std::string()}) {
    put_row(Room::local, name, value);
    EXPECT_THROW(with_db([](auto& tx, const Database& db) { return read_local(tx, db, "_local/a"); }), Error);
  }
  put_row(Room::local,
          "\x06"
          "b",
          "\x15\x01{}");
  EXPECT_THROW(with_db([](auto& tx, const Database& db) {
                 visit_locals(tx, db, {}, [](const std::string&, const LocalDocument&) { return false; });
               }),
               Error);
  std::string key;
  kv::tuple::Packer(key).versionstamp(*kv::Versionstamp::from_bytes(std::string(12, '\1')));
  const auto put_change = [&](std::int64_t generation, std::int64_t chunks) {
    std::string value;
    kv::tuple::Packer(value)
        .string("a")
        .boolean(false)
        .integer(generation)
        .bytes("r")
        .integer(0)
        .integer(chunks);
    put_row(Room::changes, key, value);
  };
  put_change(1, kMaxBodyChunks);
  EXPECT_EQ(changes().size(), 1u);
  for (const auto& [generation, chunks] : {std::pair{UINT32_MAX + std::int64_t{1}, std::int64_t{0}},
                                           {0, 0},
                                           {1, -1},
                                           {1, kMaxBodyChunks + std::int64_t{1}}}) {
    put_change(generation, chunks);
    EXPECT_THROW(changes(), Error) << generation << ", " << chunks;
  }
}

}  // namespace
}  // namespace divan::docs
