#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {

INSTANTIATE_TEST_SUITE_P(Kv, Conformance, testing::ValuesIn(engines()),
                         [](const auto& test) { return test.param.name; });

}  // namespace divan::kv::conformance
