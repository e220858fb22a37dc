// Compares the passwords of requests with hashes, on threads of its own, and caches the results.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "divan/api/password_queue.h"
#include "divan/base/mutex.h"

namespace divan::api {

inline constexpr std::int64_t kMaxLockoutThreshold = 1'000'000;
inline constexpr std::int64_t kMaxLockoutLifetimeMs = 86'400'000;

/// What happens to a name after repeated failures from one address ([chttpd_auth_lockout], as in CouchDB).
struct LockoutSettings {
  enum class Mode { off, warn, enforce };
  Mode mode = Mode::warn;
  std::size_t threshold = 5;
  std::chrono::milliseconds lifetime{300'000};  ///< after the last failure
};

/// The credentials of a request.
struct PasswordRequest {
  std::string_view name;
  std::string_view password;
  std::string_view address;  ///< the client's
  const PasswordHash& hash;
  int min_iterations = 0;  ///< of a wrong password: see compare_password()
};

struct PasswordCheckStats {
  std::uint64_t right = 0;
  std::uint64_t wrong = 0;
  std::uint64_t refused = 0;  ///< requests, not checks
  std::size_t waiting = 0;    ///< checks that wait now
};

/// Checks passwords in the order of password_queue.h. Thread-safe. It has a condition variable instead
/// of a Notifier, since several threads wait for checks.
class PasswordChecks {
 public:
  struct Options {
    /// At least two, so that checks of suspects leave one to others. 0: half of the processors.
    std::size_t threads = 0;
    PasswordQueue::Limits limits{};
    std::size_t remembered = 10'000;  ///< maximum number of cached results, of right and of wrong ones
    /// For tests: replaces compare_password().
    std::function<bool(const PasswordCheck&)> compare{};
  };

  PasswordChecks(const Clock& clock, Options options);
  ~PasswordChecks() { stop(); }
  PasswordChecks(const PasswordChecks&) = delete;
  PasswordChecks& operator=(const PasswordChecks&) = delete;

  void configure(const LockoutSettings& settings);

  /// Returns true or false if it is known whether the password is right. Otherwise returns nullopt, and calls
  /// `waiter.done`, on this or another thread, when the result is known or the check is refused. Throws
  /// forbidden (403) if the name is locked for this address, and 503 after stop().
  std::optional<bool> check(const PasswordRequest& request, PasswordWaiter waiter);

  /// Refuses (503) all waiting checks, and waits for the running ones. Idempotent.
  void stop();

  PasswordCheckStats stats() const;

 private:
  struct Failures {
    std::size_t count = 0;
    MonotonicTime last{};
  };

  void work();
  void run(const PasswordCheck& check);
  void check_lockout(const std::string& pair) const;
  void count_failure(const PasswordCheck& check);
  static void refuse(const std::vector<PasswordQueue::Refusal>& refusals);

  const Clock& clock_;
  const std::function<bool(const PasswordCheck&)> compare_;
  mutable Mutex mutex_{MutexRank::password_checks, "PasswordChecks::mutex_"};  // protects the members below
  ConditionVariable changed_;
  bool stopping_ = false;
  LockoutSettings lockout_;
  PasswordQueue queue_;
  // By a digest of name, password and hash: a result is invalid after the hash has changed.
  LruMap<bool> right_;
  LruMap<bool> wrong_;
  LruMap<Failures> locked_;  // by address, name and salt: another password unlocks a name
  PasswordCheckStats stats_;
  std::vector<std::thread> threads_;
};

}  // namespace divan::api
