#include "divan/api/uuids.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"

namespace divan::api {
namespace {

constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kRandomBytesAfterTime = 9;
constexpr std::uint64_t kMostStep = 4094;

}  // namespace

Uuids::Uuids(Rng& rng, const Clock& clock)
    : rng_(rng), clock_(clock), prefix_(to_hex(rng.bytes(kPrefixBytes))), sequence_(rng.next() >> 1) {}

void Uuids::configure(const Config& config) {
  settings_ = std::make_shared<const Settings>(Settings{config.get("uuids", "algorithm", kUuidAlgorithms[0]),
                                                        config.get("uuids", "utc_id_suffix", "")});
}

std::string Uuids::next() {
  const auto settings = settings_.load();
  const auto& algorithm = settings->algorithm;
  if (algorithm == "uuid_v7") return rng_.uuid_at(clock_.wall_ms());
  if (algorithm == "sequential") return next_sequential();
  if (algorithm == "utc_random") return next_time() + to_hex(rng_.bytes(kRandomBytesAfterTime));
  if (algorithm == "utc_id") return next_time() + settings->suffix;
  std::string id = rng_.uuid();
  if (algorithm == "uuid_v4") {
    id[12] = '4';
    id[16] = "89ab"[rng_.next() % 4];
  }
  return id;
}

std::string Uuids::next_sequential() {
  const std::uint64_t step = 1 + rng_.next() % kMostStep;
  return fmt::format("{}{:016x}", prefix_, sequence_.fetch_add(step) + step);
}

// Grows, even if the clock is set back or stands still.
std::string Uuids::next_time() {
  const std::int64_t now = clock_.wall_ms() * 1000;
  std::int64_t last = micros_, next = 0;
  do next = std::max(now, last + 1);
  while (!micros_.compare_exchange_weak(last, next));
  return fmt::format("{:014x}", next);
}

}  // namespace divan::api
