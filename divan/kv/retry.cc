#include "divan/kv/retry.h"

#include <algorithm>

#include "divan/kv/store.h"

namespace divan::kv {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr int kMaxDoublings = 8;

}  // namespace

Duration Retries::next_pause(const Error& error, Rng& rng) {
  if (!error.retryable()) throw error;
  if (++attempts_ >= kMaxAttempts) {
    throw Error(ErrorCode::transaction_timed_out, "It kept conflicting with others.");
  }
  const auto longest = kFirstPause * (1 << std::min(attempts_ - 1, kMaxDoublings));
  return Duration(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(longest.count()))));
}

}  // namespace divan::kv
