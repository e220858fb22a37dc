// Compares the passwords of requests with hashes, on threads of its own, and remembers the outcomes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "divan/api/password_queue.h"

namespace divan::api {

inline constexpr std::int64_t kMaxLockoutThreshold = 1'000'000;
inline constexpr std::int64_t kMaxLockoutLifetimeMs = 86'400'000;

/// What happens to a name that fails from one address again and again ([chttpd_auth_lockout], as in CouchDB).
struct LockoutSettings {
  enum class Mode { off, warn, enforce };
  Mode mode = Mode::warn;
  std::size_t threshold = 5;
  std::chrono::milliseconds lifetime{300'000};  ///< after the last failure
};

/// Who is who, of a request.
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
  std::uint64_t refused = 0;  ///< requests
  std::size_t waiting = 0;    ///< checks
};

/// Checks passwords in the order of password_queue.h. Thread-safe.
class PasswordChecks {
 public:
  struct Options {
    /// Two at least, one of which is no suspect's. Half of the processors without it.
    std::size_t threads = 0;
    PasswordQueue::Limits limits{};
    std::size_t remembered = 10'000;  ///< outcomes: right ones; wrong ones
    /// For tests: in place of compare_password().
    std::function<bool(const PasswordCheck&)> compare{};
  };

  PasswordChecks(const Clock& clock, Options options);
  ~PasswordChecks() { stop(); }
  PasswordChecks(const PasswordChecks&) = delete;
  PasswordChecks& operator=(const PasswordChecks&) = delete;

  void configure(const LockoutSettings& settings);

  /// True or false if it is known whether the password is right. Otherwise nullopt, and calls `waiter.done`
  /// once the outcome is known, or when the check is refused, on another thread or on this one. Throws
  /// forbidden (403) if the name is locked for this address, 503 after stop().
  std::optional<bool> check(const PasswordRequest& request, PasswordWaiter waiter);

  /// Refuses (503) whatever waits, and waits for what runs. Idempotent.
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
  static void refuse(std::vector<PasswordQueue::Refusal> refusals);

  const Clock& clock_;
  const std::function<bool(const PasswordCheck&)> compare_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  LockoutSettings lockout_;
  PasswordQueue queue_;
  // Digests of name, password and hash: an outcome is of no use once the hash is another.
  LruMap<bool> right_;
  LruMap<bool> wrong_;
  LruMap<Failures> locked_;  // by address, name and salt: another password unlocks a name
  PasswordCheckStats stats_;
  std::vector<std::thread> threads_;
};

}  // namespace divan::api
