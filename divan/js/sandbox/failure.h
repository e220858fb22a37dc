// Failures of scripts as messages.
#pragma once

#include "divan/js/protocol.h"
#include "divan/js/sandbox/engine.h"

namespace divan::js::sandbox {

/// Returns why the engine's last call failed, and clears the pending exception, if any. Must be called within
/// the invocation, since formatting the exception can run the script's code.
Failure take_failure(Engine& engine);

/// Counts how often a function has timed out or run out of memory in a batch. A value type.
class Strikes {
 public:
  /// Call for each failure, outside of the invocation: frees the memory of a runaway function.
  void count(Engine& engine, const Failure& failure);

  /// The failure to return instead of running the function again; null if it may run.
  const Failure* out() const { return count_ >= protocol::kMaxStrikes ? &last_ : nullptr; }

 private:
  std::uint32_t count_ = 0;
  Failure last_{};
};

}  // namespace divan::js::sandbox
