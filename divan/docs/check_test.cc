#include "divan/docs/check.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "divan/docs/database_settings.h"
#include "divan/docs/local.h"
#include "divan/docs/writer.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple.h"

namespace divan::docs {
namespace {

using kv::testing::MapRows;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct DocsCheck : testing::Test {
  SystemClock clock;
  kv::embedded::TemporaryStore store;
  SeededRng rng{1};
  events::Bus bus;
  Catalog catalog{bus, clock};
  DatabaseKeys keys{1};

  void SetUp() override {
    store->run([&](kv::Transaction& tx) {
      catalog.create(tx, "other");
      catalog.create(tx, "db");
      catalog.create(tx, "empty");
      write_config(tx, catalog.open(tx, "db"), "revs_limit", "10");
      write_local(tx, catalog.open(tx, "db"), parse_document(R"({"_id":"_local/small"})"));
      auto large = parse_document(R"({"_id":"_local/large"})");
      large.body = R"({"t":")" + std::string(200'000, 'x') + R"("})";
      write_local(tx, catalog.open(tx, "db"), large);
    });
    edit(R"({"_id":"a","n":1})");
    edit(R"({"_id":"b","n":1})");
    edit(R"({"_id":"c"})");
    const auto first = edit(R"({"_id":"updated","n":1})");
    edit(R"({"_id":"updated","n":2,"_rev":")" + first + "\"}");
    edit(R"({"_id":"large","t":")" + std::string(200'000, 'x') + R"("})");
    edit(R"({"_id":"gone","_deleted":true,"why":"x"})");
    for (const char* revision :
         {R"({"_id":"conflict","_rev":"3-x","n":1})", R"({"_id":"conflict","_rev":"2-y"})",
          R"({"_id":"conflict","_rev":"1-z","_deleted":true,"n":3})"}) {
      bulk_replicate(*store, catalog, "db", {parse_document(revision)});
    }
    std::vector<IncomingDocument> other = {parse_document(R"({"_id":"a"})")};
    bulk_edit(*store, catalog, "other", other, rng);
  }

  std::string edit(const std::string& json) {
    std::vector<IncomingDocument> documents = {parse_document(json)};
    const auto results = bulk_edit(*store, catalog, "db", documents, rng);
    EXPECT_FALSE(results.front().error) << results.front().error->what();
    return results.front().revision.to_string();
  }

  static kv::Findings check(MapRows& rows, kv::Version version = INT64_MAX) {
    kv::Findings findings;
    Check check(version, findings);
    EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 0u);
    return findings;
  }
  // The findings after `damage`.
  std::vector<std::string> found(const std::function<void(MapRows::Map&)>& damage) {
    MapRows rows(*store);
    damage(rows.map());
    return check(rows).kept();
  }
  // The first row of a section of "db".
  static MapRows::Map::iterator first(MapRows::Map& map, Section section) {
    return map.lower_bound(DatabaseKeys(1).section(section));
  }
};

TEST_F(DocsCheck, UndamagedDatabasesHaveNoFindings) {
  MapRows rows(*store);
  kv::Findings findings;
  Check check(store->begin()->read_version(), findings);
  EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 0u);
  EXPECT_THAT(findings.kept(), ElementsAre());
  const auto& databases = check.databases();
  ASSERT_EQ(databases.size(), 3u);
  EXPECT_EQ(databases[0].name, "db");
  EXPECT_EQ(databases[0].docs, 6);
  EXPECT_EQ(databases[0].deleted, 1);
  EXPECT_EQ(check.name_of(1), "db");
  EXPECT_EQ(check.name_of(7), std::nullopt);
}

TEST_F(DocsCheck, EveryMissingRowIsFound) {
  std::vector<std::string> names;
  for (const auto& key : kv::testing::unmissed_rows(*store, [](MapRows& rows) { return check(rows); }))
    names.push_back(kv::tuple::to_string(kv::tuple::unpack(key)));
  // No other row depends on these: a database without documents, a setting, all of a local document.
  EXPECT_THAT(names, ElementsAre(R"(("db", 1, 0, "revs_limit"))", R"(("db", 1, 5, "small", 0))",
                                 R"(("dbs", "empty"))"));
}

TEST_F(DocsCheck, EveryRowOfAWrongLengthIsFound) {
  MapRows rows(*store);
  const auto original = rows.map();
  std::vector<std::string> unnoticed;
  for (const auto& [key, value] : original) {
    if (key.starts_with(keys.section(Section::config))) continue;  // a truncated number is a number
    for (const auto& changed : {value + 'x', value.substr(0, value.size() / 2)}) {
      rows.map()[key] = changed;
      if (check(rows).count() == 0) unnoticed.push_back(kv::tuple::describe(key));
    }
    rows.map()[key] = value;
  }
  EXPECT_THAT(unnoticed, ElementsAre());
}

TEST_F(DocsCheck, InconsistenciesAreReported) {
  EXPECT_THAT(found([&](auto& map) { map.erase(first(map, Section::changes)); }),
              ElementsAre("Database db: document a has no row in the changes."));
  EXPECT_THAT(found([&](auto& map) { map.erase(first(map, Section::body)); }),
              ElementsAre(HasSubstr("Database db: the body of document a, revision 1-")));
  EXPECT_THAT(found([&](auto& map) { map.erase(first(map, Section::revs)); }),
              testing::AllOf(Contains("Database db: 1 bodies belong to no document."),
                             Contains("Database db: 1 rows of the changes belong to no document."),
                             Contains("Database db: its counter `docs` is 6, but should be 5.")));
  EXPECT_THAT(found([&](auto& map) {
                auto change = first(map, Section::changes);
                change->second = std::next(change)->second;
              }),
              ElementsAre("Database db: document a has a wrong row in the changes."));
  EXPECT_THAT(found([&](auto& map) { map.erase(keys.local("large", 1)); }),
              ElementsAre(R"(("db", 1, 5, "large", 2): the previous chunk is missing or incomplete)"));
}

TEST_F(DocsCheck, LeavesAreCountedInTheChanges) {
  // Sets the number of other leaves in a document's row of the changes; nullopt: as older versions wrote it.
  const auto with_others = [&](std::string_view id, std::optional<std::int64_t> others) {
    return found([&](MapRows::Map& map) {
      const auto row = std::find_if(first(map, Section::changes), map.end(), [&](const auto& one) {
        return kv::tuple::Reader(one.second).take_string() == id;
      });
      auto elements = kv::tuple::unpack(row->second);
      elements.pop_back();
      if (others) elements.emplace_back(*others);
      row->second = kv::tuple::pack(elements);
    });
  };
  for (const auto& [id, leaves] : {std::pair{"conflict", 2}, {"a", 0}}) {
    EXPECT_THAT(with_others(id, leaves), ElementsAre());
    EXPECT_THAT(with_others(id, std::nullopt), ElementsAre());
    EXPECT_THAT(
        with_others(id, 1),
        ElementsAre(fmt::format(
            "Database db: document {} has {} leaves besides its winner, but 1 in the changes.", id, leaves)));
  }
  EXPECT_THAT(with_others("conflict", 0), ElementsAre(HasSubstr("but 0 in the changes")));
}

// Damage that does not change any length.
TEST_F(DocsCheck, BodiesAndLocalDocumentsAreJson) {
  EXPECT_THAT(found([&](auto& map) { first(map, Section::body)->second.back() = 'x'; }),
              ElementsAre(testing::MatchesRegex(
                  "Database db: the body of document a, revision 1-.*, is not a JSON object.")));
  EXPECT_THAT(found([&](auto& map) { map[keys.local("large", 1)].front() = '"'; }),
              ElementsAre(HasSubstr(R"(("db", 1, 5, "large", 0): this local document is not)")));
  EXPECT_THAT(found([&](auto& map) { map[keys.local("small", 0)] += "[]"; }),
              ElementsAre(HasSubstr(R"(("db", 1, 5, "small", 0): this local document is not)")));
  EXPECT_THAT(found([&](auto& map) { map.erase(keys.local("large", 2)); }),
              ElementsAre(HasSubstr(R"(("db", 1, 5, "large", 0): this local document is not)")));
}

// As a restore that was interrupted between two pieces leaves it.
TEST_F(DocsCheck, ADatabaseThatIsBeingRestoredMayBeIncomplete) {
  for (const auto& last : {keys.section(Section::changes), keys.local("large", 2)}) {
    MapRows rows(*store);
    std::string record;
    kv::tuple::Packer(record).string("dbs").string("db");
    rows.map().erase(record);
    rows.map().erase(std::prev(rows.map().lower_bound(last)), rows.map().lower_bound(keys.all().end));
    kv::Findings findings;
    Check check(INT64_MAX, findings);
    check.allow_orphans(1);
    kv::testing::run_checks(rows, {&check});
    EXPECT_THAT(findings.kept(), ElementsAre());
  }
}

TEST_F(DocsCheck, CatalogAndNumbers) {
  const auto record = [](std::string_view name) {
    std::string key;
    kv::tuple::Packer(key).string("dbs").string(name);
    return key;
  };
  EXPECT_THAT(found([&](auto& map) { map.erase(record("db")); }),
              ElementsAre("The store has rows of database number 1, which is not in the catalog."));
  EXPECT_THAT(found([&](auto& map) { map[record("twin")] = map[record("empty")]; }),
              ElementsAre("Databases empty and twin have the same number 2."));
  EXPECT_THAT(found([&](auto& map) { map[record("Upper")].swap(map[record("empty")]); }),
              ElementsAre(HasSubstr("Name: 'Upper'"), HasSubstr("empty is damaged")));
  EXPECT_THAT(found([&](auto& map) { map[record("wrong")] = "x"; }),
              ElementsAre(HasSubstr("wrong is damaged")));

  MapRows rows(*store);
  rows.map().erase(record("db"));
  kv::Findings findings;
  Check check(INT64_MAX, findings);
  check.allow_orphans(1);
  kv::testing::run_checks(rows, {&check});
  EXPECT_EQ(findings.count(), 0u);
}

TEST_F(DocsCheck, VersionstampsBeyondTheStoresVersionAreFound) {
  MapRows rows(*store);
  const auto now = store->begin()->read_version();
  EXPECT_EQ(check(rows, now).count(), 0u);
  EXPECT_THAT(check(rows, 4).kept(), Contains(HasSubstr("greater than the store's version 4")));
}

TEST_F(DocsCheck, InvalidKeysAreFound) {
  const auto with_key = [&](const std::string& key) { return found([&](auto& map) { map[key] = "x"; }); };
  std::string unknown_section = keys.prefix();
  kv::tuple::Packer(unknown_section).integer(6);
  for (const auto& key : {keys.prefix(), unknown_section, keys.section(Section::revs) + "x",
                          keys.section(Section::stats), keys.section(Section::changes) + "\x02z",
                          keys.section(Section::body), keys.section(Section::config)}) {
    EXPECT_FALSE(with_key(key).empty()) << kv::tuple::describe(key);
  }
}

}  // namespace
}  // namespace divan::docs
