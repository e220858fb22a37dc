#include "divan/app/server_check.h"

#include <gmock/gmock.h>

#include "divan/app/store.h"
#include "divan/base/rng.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/lossy_testing.h"
#include "divan/kv/tuple.h"

namespace divan::app {
namespace {

using kv::testing::MapRows;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> findings_of(MapRows::Map map) {
  MapRows rows(std::move(map));
  kv::Findings findings;
  ServerCheck check(findings);
  EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 0u);
  return findings.kept();
}

// The rows of a store that has an identity, written by commits that leave marks.
MapRows::Map server_rows() {
  kv::embedded::TemporaryStore store;
  kv::testing::LossyStore marking(*store);
  SystemRng rng;
  server_uuid(marking, rng);
  return MapRows(*store).map();
}

TEST(ServerCheck, TheIdentityAndMarksOfCommitsAreValid) {
  const auto rows = server_rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(findings_of(rows), ElementsAre());
}

TEST(ServerCheck, RowsOfAWrongLengthAreFound) {
  const auto rows = server_rows();
  for (const auto& [key, value] : rows) {
    for (const auto& damaged : {std::string(), value.substr(1), value + 'x'}) {
      auto changed = rows;
      changed[key] = damaged;
      EXPECT_THAT(findings_of(changed), ElementsAre(HasSubstr("is damaged"))) << kv::tuple::describe(key);
    }
    auto changed = rows;
    changed.emplace(key + '\x01' + '\0', value);  // one more element, empty bytes
    EXPECT_THAT(findings_of(changed), ElementsAre(HasSubstr("is damaged"))) << kv::tuple::describe(key);
  }
}

TEST(ServerCheck, OtherRowsAreUnknown) {
  MapRows rows(MapRows::Map{{"x", ""}});
  kv::Findings findings;
  ServerCheck check(findings);
  EXPECT_EQ(kv::testing::run_checks(rows, {&check}), 1u);
  EXPECT_EQ(findings.count(), 0u);
}

}  // namespace
}  // namespace divan::app
