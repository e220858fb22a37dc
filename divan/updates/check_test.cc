#include "divan/updates/check.h"

#include <gmock/gmock.h>

#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/tuple.h"
#include "divan/updates/recording.h"

namespace divan::updates {
namespace {

using kv::testing::MapRows;
using testing::ElementsAre;

struct UpdatesCheck : testing::Test {
  SystemClock clock;
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  docs::Catalog catalog{bus, clock};

  void SetUp() override {
    catalog.on_change([](kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind,
                         std::string_view id) { record_change(tx, database, kind, id, {}); });
    for (const char* name : {"a", "b"}) store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
    store->run([&](kv::Transaction& tx) {
      catalog.changed(tx, catalog.open(tx, "a"), events::DatabaseEvent::updated);
    });
    store->run([&](kv::Transaction& tx) { catalog.remove(tx, "b"); });
  }
  static kv::Findings check(MapRows& rows, kv::Version version = INT64_MAX) {
    kv::Findings findings;
    Check check(version, findings);
    kv::testing::run_checks(rows, {&check});
    return findings;
  }
};

TEST_F(UpdatesCheck, EveryRowThatIsLostIsMissed) {
  MapRows rows(*store);
  EXPECT_THAT(check(rows, store->begin()->read_version()).kept(), ElementsAre());
  EXPECT_GT(check(rows, 1).count(), 0u);
  std::vector<std::string> names;
  for (const auto& key : kv::testing::unmissed_rows(*store, [](MapRows& left) { return check(left); })) {
    const auto name = kv::tuple::describe(key);
    if (name.find("updates") != std::string::npos) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre(R"(("updates", "dirty", 0, "a"))"));  // there may be marks or none
}

TEST_F(UpdatesCheck, DamagedRowsAreFound) {
  MapRows rows(*store);
  const auto original = rows.map();
  for (const auto& [key, value] : original) {
    if (!kv::tuple::describe(key).starts_with(R"(("updates")")) continue;
    rows.map()[key] = value + 'x';
    EXPECT_GT(check(rows).count(), 0u) << kv::tuple::describe(key);
    rows.map()[key] = value;
  }
}

}  // namespace
}  // namespace divan::updates
