#include "divan/kv/conformance/conformance.h"
#include "divan/kv/fdb/temporary_store.h"

namespace divan::kv::conformance {

INSTANTIATE_TEST_SUITE_P(Kv, Conformance, testing::ValuesIn(engines()),
                         [](const auto& test) { return test.param.name; });

// Shows in the test report that an engine was left out.
TEST(KvConformance, RunsOnFoundationDb) {
  if (!fdb::test_cluster_file()) GTEST_SKIP() << fdb::kNoTestCluster;
  EXPECT_EQ(engines().back().name, "fdb");
}

}  // namespace divan::kv::conformance
