// The tries of a transaction, and the pauses between them for engines whose client has none.
#pragma once

#include "divan/base/clock.h"
#include "divan/base/rng.h"
#include "divan/kv/error.h"

namespace divan::kv {

/// Adds a failed try to `tries`, and throws transaction_timed_out if there may be no other. A try that has
/// taken the whole lifetime of a transaction counts as twenty, so that a function that is too slow does not
/// occupy its thread for more than a minute.
void count_try(int& tries, const Error& error);

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
