// The engines that the conformance suite runs on.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "divan/kv/store.h"

namespace divan::kv::conformance {

/// An empty store for one test, removed with this object. An engine with a single store for many processes
/// clears it.
class TestStore {
 public:
  virtual ~TestStore() = default;
  virtual Database& database() = 0;
};

struct Engine {
  std::string name;
  /// Its transactions age by the clock that it is given. Tests of what happens after 5 s need that.
  bool time_is_injected = true;
  /// The clock must outlive the store.
  std::function<std::unique_ptr<TestStore>(const Clock& clock, std::size_t max_watches)> make;
};

inline void PrintTo(const Engine& engine, std::ostream* out) { *out << engine.name; }

/// A new engine is added here.
const std::vector<Engine>& engines();

}  // namespace divan::kv::conformance
