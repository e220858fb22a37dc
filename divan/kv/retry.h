// The pauses between the tries of a transaction, for engines whose client has none.
#pragma once

#include "divan/base/clock.h"
#include "divan/base/rng.h"
#include "divan/kv/error.h"

namespace divan::kv {

/// Of one transaction. Not thread-safe.
class Retries {
 public:
  /// Sleeps before the next try: a random time that doubles with the tries, at most a quarter of a second.
  /// Throws `error` if it is not retryable(), transaction_timed_out after kMaxAttempts.
  void pause(const Error& error, const Clock& clock, Rng& rng);

 private:
  int attempts_ = 0;
};

}  // namespace divan::kv
