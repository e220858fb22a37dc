// Injected randomness (compare clock.h).
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "divan/base/mutex.h"

namespace divan {

/// A source of random numbers. Thread-safe.
class Rng {
 public:
  virtual ~Rng() = default;

  /// 64 uniformly random bits.
  virtual std::uint64_t next() = 0;

  /// Uniform in [0, bound); bound > 0. (The bias of the modulo is below 2^-32 for any bound that a schedule
  /// uses.)
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  /// `size` random bytes.
  std::string bytes(std::size_t size);

  /// 32 lower-case hexadecimal digits, as CouchDB writes its UUIDs.
  std::string uuid();

  /// The same form, ordered by time (RFC 9562, version 7; milliseconds since 1970): objects that are created
  /// together are adjacent in the store.
  std::string uuid_at(std::int64_t wall_ms);
};

/// Cryptographically strong bits from the operating system.
class SystemRng final : public Rng {
 public:
  std::uint64_t next() override;
};

/// A deterministic generator: the same seed yields the same numbers. For tests and the simulation.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override {
    std::lock_guard lock(mutex_);
    return engine_();
  }

 private:
  Mutex mutex_{MutexRank::random, "SeededRng::mutex_"};  // protects engine_
  std::mt19937_64 engine_;
};

}  // namespace divan
