// What went wrong in a script, in words.
#pragma once

#include "divan/js/protocol.h"
#include "divan/js/sandbox/engine.h"

namespace divan::js::sandbox {

/// Why the engine's last call failed; takes the pending exception, if there is one. To be called within the
/// invocation, since wording the exception can run the script's code.
Failure take_failure(Engine& engine);

/// How often a function has wasted the batch's time, and whether that is enough. A value type.
class Strikes {
 public:
  /// To be called for each failure, outside of the invocation: frees the memory that a runaway function has
  /// left behind.
  void count(Engine& engine, const Failure& failure);

  /// What to answer instead of running the function again; null if it may run.
  const Failure* out() const { return count_ >= protocol::kMaxStrikes ? &last_ : nullptr; }

 private:
  std::uint32_t count_ = 0;
  Failure last_{};
};

}  // namespace divan::js::sandbox
