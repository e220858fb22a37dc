// A fixture for tests of databases and documents: a catalog on a store of its own, with the database "db".
#pragma once

#include <gmock/gmock.h>

#include "divan/base/error_testing.h"
#include "divan/base/json.h"
#include "divan/docs/changes.h"
#include "divan/docs/check.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::docs {

struct DocsTest : testing::Test {
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

  void replicate(const std::vector<std::string>& jsons) {
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

  // What `divan verify` finds, after this damage to the rows.
  std::vector<std::string> findings(const std::function<void(kv::testing::MapRows::Map&)>& damage = {}) {
    kv::testing::MapRows rows(*store);
    if (damage) damage(rows.map());
    kv::Findings found;
    Check check(store->begin()->read_version(), found);
    EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 0u);
    return found.kept();
  }

  DatabaseInfo info() {
    return with_db([&](auto& tx, const Database& db) { return read_info(tx, db); });
  }
};

}  // namespace divan::docs
