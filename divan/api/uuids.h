// The ids of documents that are written without one, and of _uuids: [uuids] algorithm
// (https://docs.couchdb.org/en/stable/config/misc.html#uuids-configuration).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/config.h"
#include "divan/base/rng.h"

namespace divan::api {

/// The names of the algorithms, of which the first one is the default:
///   uuid_v7     RFC 9562, version 7: begins with the time, in milliseconds
///   uuid_v4     RFC 9562, version 4
///   random      128 random bits
///   sequential  random when the server starts; then each is greater than the one before by less than 4095
///   utc_random  the time, in microseconds, then random bits
///   utc_id      the time, in microseconds, then [uuids] utc_id_suffix
inline constexpr const char* kUuidAlgorithms[] = {"uuid_v7",    "uuid_v4",    "random",
                                                  "sequential", "utc_random", "utc_id"};

/// The default of [uuids] max_count.
inline constexpr std::int64_t kMaxUuids = 1000;

/// Thread-safe. The references must outlive it.
class Uuids {
 public:
  Uuids(Rng& rng, const Clock& clock);
  Uuids(const Uuids&) = delete;
  Uuids& operator=(const Uuids&) = delete;

  /// Reads [uuids] algorithm and utc_id_suffix.
  void configure(const Config& config);

  /// A new id: hexadecimal digits, and perhaps a suffix.
  std::string next();

 private:
  struct Settings {
    std::string algorithm = kUuidAlgorithms[0];
    std::string suffix{};
  };

  std::string next_sequential();
  std::string next_time();

  Rng& rng_;
  const Clock& clock_;
  std::atomic<std::shared_ptr<const Settings>> settings_ = std::make_shared<const Settings>();
  const std::string prefix_;              // of the sequential ids
  std::atomic<std::uint64_t> sequence_;   // of the last one
  std::atomic<std::int64_t> micros_ = 0;  // of the last id with a time
};

}  // namespace divan::api
