// The queue of passwords that wait to be checked.
//
// A check takes about 0.3 s of CPU time by design, so a few clients that guess passwords could prevent all
// others from logging in. Only a check distinguishes a guess from a right password, but clients that guess
// have failed before. The next check is the one with
//   1. the fewest recent failures of its address,
//   2. then the fewest recent failures of its name,
//   3. then a name that has logged in from this address before,
//   4. then the address, and then the name, that was least recently served,
//   5. then the earliest arrival.
// So an address that guesses comes after all others; addresses that guess one name come after that name's
// owner; and good users who share an address with a client that guesses (behind a NAT, or a reverse proxy
// that is not trusted: client_address.h) come after other addresses only. No rule refuses a check that could
// succeed: a check is refused only if too many wait, starting with the last by these rules, or if it has
// waited too long.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "divan/api/password.h"
#include "divan/base/clock.h"
#include "divan/base/error.h"
#include "divan/base/lru_map.h"

namespace divan::api {

/// A password to be compared with a hash.
struct PasswordCheck {
  std::string key{};      ///< identifies name, password and hash
  std::string address{};  ///< the client's, as returned by address_key()
  std::string name{};     ///< as returned by name_key()
  std::string password{};
  PasswordHash hash{};
  int min_iterations = 0;     ///< of a wrong password: see compare_password()
  std::string description{};  ///< name and address, for the log
};

/// A request that waits for a check.
struct PasswordWaiter {
  std::size_t bytes = 0;                 ///< size of the request's body
  std::function<bool()> disconnected{};  ///< returns true if the client has disconnected
  /// Called once: with null if the check was made, otherwise with the error.
  std::function<void(const Error* refusal)> done{};
};

/// The key by which a client's failures are counted: an IPv4 address, or the first 64 bits of an IPv6
/// address, since one customer of a network usually has all addresses with that prefix.
std::string address_key(std::string_view address);
/// The key by which a name's failures are counted: a digest, since clients can send names of any size.
std::string name_key(std::string_view name);

struct PasswordQueueLimits {
  std::size_t checks = 1000;             ///< maximum number of waiting checks
  std::size_t bytes = 256 << 20;         ///< maximum memory of waiting requests
  std::chrono::seconds wait{60};         ///< maximum time that a check waits
  std::size_t remembered = 10'000;       ///< maximum number of addresses; of names; of pairs of both
  std::chrono::seconds lifetime{300};    ///< time after the last failure until failures are forgotten
  std::size_t suspect_failures = 5;      ///< an address with this many failures is a suspect
  std::size_t max_running_suspects = 1;  ///< maximum number of concurrent checks of suspects
};

/// The queue of checks. Identical checks are merged into one for all requests that wait for it. Not
/// thread-safe.
class PasswordQueue {
 public:
  using Limits = PasswordQueueLimits;
  struct Refusal {
    PasswordWaiter waiter;
    Error error;
  };

  PasswordQueue(const Clock& clock, const Limits& limits);

  void set_lifetime(std::chrono::milliseconds lifetime) { lifetime_ = lifetime; }

  /// Adds a request. Returns the requests that are refused as a consequence, possibly including this one:
  /// with 429 if their address or name has failures, otherwise with 503. The caller must call their `done`.
  [[nodiscard]] std::vector<Refusal> add(PasswordCheck check, PasswordWaiter waiter);

  /// Removes requests that have waited too long, with the same errors, and those whose clients have
  /// disconnected.
  [[nodiscard]] std::vector<Refusal> expire();

  /// Returns the next check, which the caller must end with finish(); nullopt if none may begin.
  std::optional<PasswordCheck> next();

  /// Ends a check that next() returned; `right` is its result, or nullopt if it failed. Returns the requests
  /// that waited for it.
  [[nodiscard]] std::vector<PasswordWaiter> finish(const PasswordCheck& check, std::optional<bool> right);

  /// Removes and returns all requests.
  [[nodiscard]] std::vector<PasswordWaiter> clear();

  std::size_t waiting() const { return waiting_; }
  std::size_t bytes() const { return bytes_; }

 private:
  // The failures of an address or a name.
  struct Source {
    std::size_t failures = 0;
    MonotonicTime last_failure{};
    std::uint64_t last_served = 0;  // a sequence number
  };
  using Sources = LruMap<Source>;
  struct Entry {
    PasswordCheck check{};
    std::string pair{};  // address and name
    std::vector<PasswordWaiter> waiters{};
    MonotonicTime since{};
    bool running = false;
    bool suspect = false;  // when it began to run
  };
  using Entries = std::list<Entry>;
  using Rank = std::array<std::uint64_t, 5>;  // the least is next

  Source source(const Sources& sources, std::string_view key, MonotonicTime now) const;
  Rank rank(const Entry& entry, MonotonicTime now) const;
  bool is_suspect(const PasswordCheck& check) const;
  Error refusal(const PasswordCheck& check) const;
  void refuse(Entries::iterator entry, std::vector<Refusal>& refusals);
  void subtract_bytes(const PasswordWaiter& waiter);
  std::vector<PasswordWaiter> remove(Entries::iterator entry);
  Entries::iterator last();
  void count_failure(Sources& sources, const std::string& key);

  const Clock& clock_;
  const Limits limits_;
  std::chrono::milliseconds lifetime_;
  Entries entries_;  // in the order of arrival
  std::unordered_map<std::string, Entries::iterator> by_key_;
  std::size_t waiting_ = 0;  // entries that are not running
  std::size_t bytes_ = 0;    // of all waiters
  std::size_t running_suspects_ = 0;
  std::uint64_t served_ = 0;
  Sources addresses_;
  Sources names_;
  LruMap<bool> known_;  // pairs of address and name that have logged in
};

}  // namespace divan::api
