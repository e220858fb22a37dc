#include "divan/purge/times.h"

#include <algorithm>
#include <vector>

#include "divan/base/error.h"
#include "divan/kv/tuple_packer.h"

namespace divan::purge {
namespace {

// The distance of samples is at most this part of their age.
constexpr std::int64_t kParts = 64;

std::string prefix() {
  std::string key;
  kv::tuple::Packer(key).string("times");
  return key;
}

std::string sample_key(std::int64_t time_ms) {
  std::string key = prefix();
  kv::tuple::Packer(key).integer(time_ms);
  return key;
}

std::vector<TimeSample> read_samples(kv::Transaction& tx) {
  std::vector<TimeSample> samples;
  tx.scan(kv::below(prefix()), {}, [&](std::string_view key, std::string_view value) {
    samples.push_back(*read_time_sample(key, value));
    return true;
  });
  return samples;
}

}  // namespace

void sample_time(kv::Transaction& tx, std::int64_t now_ms, Duration interval) {
  const std::int64_t interval_ms = std::chrono::duration_cast<std::chrono::milliseconds>(interval).count();
  auto samples = read_samples(tx);
  while (!samples.empty() && samples.back().time_ms > now_ms) {
    tx.clear(sample_key(samples.back().time_ms));
    samples.pop_back();
  }
  if (!samples.empty() && samples.back().time_ms > now_ms - interval_ms) return;
  std::string value;
  kv::tuple::Packer(value).integer(tx.read_version());
  tx.set(sample_key(now_ms), value);
  // A sample is kept if its neighbours would be too far from each other without it.
  for (std::size_t i = 1, kept = 0; i + 1 < samples.size(); ++i) {
    const std::int64_t gap = samples[i + 1].time_ms - samples[kept].time_ms;
    if (gap <= std::max(interval_ms, (now_ms - samples[i].time_ms) / kParts)) {
      tx.clear(sample_key(samples[i].time_ms));
    } else {
      kept = i;
    }
  }
}

std::optional<kv::Version> version_before(kv::Transaction& tx, std::int64_t time_ms) {
  const kv::KeyRange all = kv::below(prefix());
  if (time_ms <= 0) return std::nullopt;
  std::optional<kv::Version> version;
  tx.scan({all.begin, sample_key(time_ms)},
          {.limit = 1, .reverse = true, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            version = read_time_sample(key, value)->version;
            return true;
          });
  return version;
}

std::optional<TimeSample> read_time_sample(std::string_view key, std::string_view value) {
  static const std::string begin = prefix();
  if (!key.starts_with(begin)) return std::nullopt;
  kv::tuple::Reader time(key.substr(begin.size())), reader(value);
  const auto time_ms = time.take_int();
  const auto version = reader.take_int();
  if (!time_ms || !time.at_end() || !version || !reader.at_end())
    throw internal_error("A sample of the clock in the store is damaged.");
  return TimeSample{*time_ms, *version};
}

}  // namespace divan::purge
