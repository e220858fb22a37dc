// Databases by name, their hooks and events.
#include <algorithm>

#include "divan/docs/database_settings.h"
#include "divan/docs/local.h"
#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

struct Catalogs : DocsTest {};

TEST_F(Catalogs, DatabaseNames) {
  for (const std::string_view name : {"a", "a0_$()+-/z", "_users", "_replicator"}) check_database_name(name);
  for (const std::string& name : {std::string(), std::string("A"), std::string("0a"), std::string("_a"),
                                  std::string("a b"), std::string("a\xc3\xbc")}) {
    EXPECT_THAT(error_of([&] { check_database_name(name); }), testing::HasSubstr("illegal_database_name"));
  }
  check_database_name(std::string(238, 'a'));
  EXPECT_THAT(error_of([&] { check_database_name(std::string(239, 'a')); }),
              testing::HasSubstr("database_name_too_long"));
}

TEST_F(Catalogs, DatabasesAreCreatedListedAndRemoved) {
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

// All ranges of the names and of strings before, between and after them, against a filter of the list.
TEST_F(Catalogs, DatabasesOfARange) {
  const std::vector<std::string> all = {"b", "b0", "d", "db"};
  for (const auto& name : all) {
    if (name != "db") store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  const std::vector<std::optional<std::string>> bounds = {std::nullopt, "", "a", "b", "b0", "c", "db", "x"};
  for (const auto& start : bounds) {
    for (const auto& end : bounds) {
      for (const int flags : {0, 1, 2, 3}) {
        const bool inclusive = (flags & 1) != 0, descending = (flags & 2) != 0;
        std::vector<std::string> expected;
        for (const auto& name : all) {
          const auto& lower = descending ? end : start;
          const auto& upper = descending ? start : end;
          if ((lower && name < *lower) || (upper && name > *upper) || (!inclusive && end == name)) continue;
          expected.push_back(name);
        }
        if (descending) std::ranges::reverse(expected);
        const auto found = store->run([&](kv::Transaction& tx) {
          return catalog.list(
              tx, {.start_key = start, .end_key = end, .inclusive_end = inclusive, .descending = descending});
        });
        EXPECT_EQ(found, expected) << start.value_or("-") << " " << end.value_or("-") << " " << flags;
      }
    }
  }
}

TEST_F(Catalogs, ARecreatedDatabaseIsEmpty) {
  put(R"({"_id":"a"})");
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  EXPECT_THAT(error_of([&] { get("a"); }), testing::HasSubstr("Database does not exist"));
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  EXPECT_THAT(error_of([&] { get("a"); }), testing::HasSubstr("missing"));
  EXPECT_EQ(info().doc_count, 0);
}

TEST_F(Catalogs, EventsComeAfterTheCommitOnceForABatch) {
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

TEST_F(Catalogs, EveryKindOfChangeIsAnEvent) {
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
  // A transaction that is not committed publishes no events.
  const auto fails = [&](kv::Transaction& tx) {
    catalog.remove(tx, "other");
    throw Error(500, "on_purpose", "");
  };
  EXPECT_THROW(store->run(fails), Error);
  EXPECT_EQ(kinds(), Kinds());
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "other"); });
  EXPECT_EQ(kinds(), Kinds{"deleted "});
}

TEST_F(Catalogs, HooksRunInTheTransaction) {
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

// Functions are compiled, which is slow, outside of the transaction, so that a conflict does not repeat it.
TEST_F(Catalogs, ADesignDocumentIsCheckedOnceEvenIfItsTransactionIsRetried) {
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
  EXPECT_EQ(checks, 2) << "another server has accepted it";
  // Not for a database that does not exist.
  std::vector documents{parse_document(R"({"_id":"_design/z"})")};
  EXPECT_THROW(bulk_edit(*store, catalog, "none", documents, rng), Error);
  EXPECT_EQ(checks, 2);
}

TEST_F(Catalogs, ACheckOfDesignDocumentsCanBeCancelled) {
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

}  // namespace
}  // namespace divan::docs
