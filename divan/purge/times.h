// When the versions of a store were assigned, approximately: samples of the clock.
//
// The rows of a deletion have a version, and no time. So a sample of the clock is written now and then, with
// the version of the store at that moment. What has at most the version of a sample is at least as old as the
// sample. Samples become sparser with their age: the distance between two of them is about a 64th of it, so
// that there are some hundreds, whatever the time. docs/keyspace.md
#pragma once

#include <optional>

#include "divan/base/clock.h"
#include "divan/kv/store.h"

namespace divan::purge {

/// Adds a sample, unless there is one that is not older than `interval`, and removes those that are too close
/// to each other. Samples of the future, which a clock has left that was wrong, are removed.
void sample_time(kv::Transaction& tx, std::int64_t now_ms, Duration interval);

/// A version such that everything with at most this version was written before `time_ms`, milliseconds since
/// 1970; nullopt if none is known.
std::optional<kv::Version> version_before(kv::Transaction& tx, std::int64_t time_ms);

/// Decodes a row of a sample; nullopt if `key` is not the key of one. Throws an internal error if it is
/// damaged.
struct TimeSample {
  std::int64_t time_ms = 0;
  kv::Version version = 0;
};
std::optional<TimeSample> read_time_sample(std::string_view key, std::string_view value);

}  // namespace divan::purge
