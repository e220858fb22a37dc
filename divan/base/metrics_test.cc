#include "divan/base/metrics.h"

#include <gmock/gmock.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace divan {
namespace {

TEST(Metrics, AreShownAsText) {
  Metrics metrics;
  metrics.counter("divan_things_total", "Things.", {{"kind", "a"}}).Increment(2);
  metrics.counter("divan_things_total", "Things.", {{"kind", "a"}}).Increment();
  auto& gauge = metrics.gauge("divan_level", "Level.");
  metrics.on_collect([&] { gauge.Set(7); });
  EXPECT_THAT(metrics.text(), testing::HasSubstr("divan_things_total{kind=\"a\"} 3\n"));
  EXPECT_THAT(metrics.text(), testing::HasSubstr("divan_level 7\n"));
}

}  // namespace
}  // namespace divan
