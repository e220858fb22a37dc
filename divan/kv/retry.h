// The pauses between the tries of a transaction, for engines whose client has none.
#pragma once

#include "divan/base/clock.h"
#include "divan/base/rng.h"
#include "divan/kv/error.h"

namespace divan::kv {

/// Of one transaction. Not thread-safe.
class Retries {
 public:
  /// Returns the pause before the next try: a random time that doubles with the tries, at most a quarter of a
  /// second. Throws `error` if it is not retryable(), transaction_timed_out after kMaxAttempts.
  Duration next_pause(const Error& error, Rng& rng);

 private:
  int attempts_ = 0;
};

}  // namespace divan::kv
