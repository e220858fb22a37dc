#include "divan/kv/retry.h"

#include <algorithm>

#include "divan/kv/store.h"

namespace divan::kv {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr int kMaxDoublings = 8;
constexpr int kCountOfExpiredTry = 20;

}  // namespace

void count_try(int& tries, const Error& error) {
  const bool has_expired = error.code() == ErrorCode::transaction_too_old;
  tries += has_expired ? kCountOfExpiredTry : 1;
  if (tries < kMaxAttempts) return;
  throw Error(ErrorCode::transaction_timed_out,
              has_expired ? "It took longer than 5 seconds each time." : "It kept conflicting with others.");
}

Duration Retries::next_pause(const Error& error, Rng& rng) {
  if (!error.retryable()) throw error;
  count_try(attempts_, error);
  const auto longest = kFirstPause * (1 << std::min(attempts_ - 1, kMaxDoublings));
  return Duration(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(longest.count()))));
}

}  // namespace divan::kv
