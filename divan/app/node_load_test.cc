#include "divan/app/node_load.h"

#include "divan/base/precompiled_test.h"

namespace divan::app {
namespace {

using std::chrono::seconds;

TEST(NodeLoad, RatesAreOverTheTimeSinceTheLastReport) {
  ManualClock clock;
  NodeLoad load(clock);
  clock.advance(seconds(2));
  NodeUse use{.cpu_seconds = 3,
              .javascript_seconds = 1,
              .requests = 20,
              .builds = 2,
              .memory_bytes = 4096,
              .disk = {.total_bytes = 9000, .free_bytes = 50}};
  EXPECT_EQ(load.report(use),
            R"({"cpu_cores":1.50,"javascript_processes":0.50,"requests_per_second":10.0,"builds":2,)"
            R"("memory_bytes":4096,"disk_total_bytes":9000,"disk_free_bytes":50})");
  clock.advance(seconds(4));
  use.requests = 21;
  use.builds = 0;
  EXPECT_EQ(load.report(use),
            R"({"cpu_cores":0.00,"javascript_processes":0.00,"requests_per_second":0.2,"builds":0,)"
            R"("memory_bytes":4096,"disk_total_bytes":9000,"disk_free_bytes":50})");
}

TEST(NodeLoad, TheUseOfAProcessIsMeasured) {
  const auto before = with_process_use({.requests = 7});
  EXPECT_EQ(before.requests, 7u);
  EXPECT_GT(before.memory_bytes, 1 << 20);
  while (with_process_use({}).cpu_seconds <= before.cpu_seconds) {}
}

TEST(NodeLoad, TheSpaceOfAFileSystemIsRead) {
  const auto space = disk_space("/");
  EXPECT_GT(space.total_bytes, 1 << 20);
  EXPECT_LE(space.free_bytes, space.total_bytes);
  EXPECT_EQ(disk_space("/does/not/exist").total_bytes, 0);
}

}  // namespace
}  // namespace divan::app
