#include "divan/api/statistics.h"

#include <gmock/gmock.h>

#include "divan/base/json.h"

namespace divan::api {
namespace {

using ::testing::HasSubstr;

std::string at(const Statistics& statistics, std::vector<std::string> path) { return statistics.json(path); }

TEST(Statistics, AreNestedByTheirPaths) {
  const ManualClock clock;
  Statistics statistics(clock);
  statistics.add("zoo.b.two", Statistics::Kind::gauge, "2", [] { return 2U; });
  statistics.add("zoo.a", Statistics::Kind::counter, "0", [] { return 0U; });
  statistics.add("zoo.b.one", Statistics::Kind::counter, "1", [] { return 1U; });
  EXPECT_EQ(
      at(statistics, {"zoo"}),
      R"({"a":{"value":0,"type":"counter","desc":"0"},)"
      R"("b":{"one":{"value":1,"type":"counter","desc":"1"},"two":{"value":2,"type":"gauge","desc":"2"}}})");
  EXPECT_EQ(at(statistics, {"zoo", "b", "two"}), R"({"value":2,"type":"gauge","desc":"2"})");
  EXPECT_EQ(at(statistics, {"zoo", "b", "two", "value"}), "null");
  EXPECT_EQ(at(statistics, {"zoo", "c"}), "null");
  const auto all = at(statistics, {});
  EXPECT_EQ(json::compact(all), all);
  EXPECT_THAT(all, HasSubstr(R"("two":{"value":2,"type":"gauge","desc":"2"}}}})"));
}

}  // namespace
}  // namespace divan::api
