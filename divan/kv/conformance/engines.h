// The engines that the conformance suite runs on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "divan/kv/store.h"

namespace divan::kv::conformance {

/// A store of one test's own: empty, and gone with this object.
class TestStore {
 public:
  virtual ~TestStore() = default;
  virtual Database& database() = 0;
};

struct Engine {
  std::string name;
  /// The clock must outlive the store.
  std::function<std::unique_ptr<TestStore>(const Clock& clock, std::size_t max_watches)> make;
};

/// Whoever writes an engine adds it here.
const std::vector<Engine>& engines();

}  // namespace divan::kv::conformance
