// Passwords that wait to be checked, and which of them is next.
//
// A check takes about 0.3 s of a processor on purpose, so a few clients that guess passwords could keep all
// others from logging in. Only a check distinguishes a guess from a good password, but clients that guess
// have failed before. Of the checks that wait, the next is the one with
//   1. the fewest recent failures of its address,
//   2. then the fewest recent failures of its name,
//   3. then a name that has logged in from this address before,
//   4. then the address, and then the name, that was served longest ago,
//   5. then the first that came.
// So an address that guesses comes after all others, addresses that guess one name come after that name's
// owner, and good users who share an address with a client that guesses (a NAT, a reverse proxy that is not
// trusted: client_address.h) come after other addresses only. No rule refuses a check that could be right: a
// check is refused only if too many wait, the last by these rules first, or if it has waited too long.
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
  std::string key{};      ///< equal if name, password and hash are
  std::string address{};  ///< the client's, as address_key() gives it
  std::string name{};     ///< as name_key() gives it
  std::string password{};
  PasswordHash hash{};
  int min_iterations = 0;     ///< of a wrong password: see compare_password()
  std::string description{};  ///< name and address in words
};

/// A request that waits for a check.
struct PasswordWaiter {
  std::size_t bytes = 0;         ///< memory that it holds
  std::function<bool()> gone{};  ///< true once its client has left
  /// Called once: with null when the check is done, otherwise with why it is not.
  std::function<void(const Error* refusal)> done{};
};

/// What a client's failures are counted by: an IPv4 address, or the first 64 bits of an IPv6 address, since
/// one customer of a network has as many addresses as fit below.
std::string address_key(std::string_view address);
/// Names are as long as clients like; the key is not.
std::string name_key(std::string_view name);

struct PasswordQueueLimits {
  std::size_t checks = 1000;             ///< that wait
  std::size_t bytes = 256 << 20;         ///< of the requests that wait
  std::chrono::seconds wait{60};         ///< of one check
  std::size_t remembered = 10'000;       ///< addresses; names; pairs of both
  std::chrono::seconds lifetime{300};    ///< of an address's or a name's failures after the last one
  std::size_t suspect_failures = 5;      ///< an address that has as many is a suspect
  std::size_t max_running_suspects = 1;  ///< checks of suspects at a time
};

/// The order of checks. Not thread-safe. Identical checks are one, for all requests that wait for it.
class PasswordQueue {
 public:
  using Limits = PasswordQueueLimits;
  struct Refusal {
    PasswordWaiter waiter;
    Error error;
  };

  PasswordQueue(const Clock& clock, const Limits& limits);

  void set_lifetime(std::chrono::milliseconds lifetime) { lifetime_ = lifetime; }

  /// Takes a request. Returns the requests that are refused for it, which may be itself: 429 those of
  /// addresses and names with failures, 503 all others. The caller calls them.
  [[nodiscard]] std::vector<Refusal> add(PasswordCheck check, PasswordWaiter waiter);

  /// Removes the requests that have waited too long, with the same errors, and those whose clients have left.
  [[nodiscard]] std::vector<Refusal> expire();

  /// The next check, which is the caller's until it calls finish(); nullopt if none may begin.
  std::optional<PasswordCheck> next();

  /// Ends a check that next() returned; `right` is its outcome, if it has one. Returns the requests that
  /// waited for it.
  [[nodiscard]] std::vector<PasswordWaiter> finish(const PasswordCheck& check, std::optional<bool> right);

  /// Removes all requests.
  [[nodiscard]] std::vector<PasswordWaiter> clear();

  std::size_t waiting() const { return waiting_; }
  std::size_t bytes() const { return bytes_; }

 private:
  // What is known of an address or a name.
  struct Source {
    std::size_t failures = 0;
    MonotonicTime last_failure{};
    std::uint64_t last_served = 0;  // a number that grows
  };
  using Sources = LruMap<Source>;
  struct Entry {
    PasswordCheck check{};
    std::string pair{};  // address and name
    std::vector<PasswordWaiter> waiters{};
    MonotonicTime since{};
    bool running = false;
    bool suspect = false;  // as it began to run
  };
  using Entries = std::list<Entry>;
  using Rank = std::array<std::uint64_t, 5>;  // the least is the next

  Source source(const Sources& sources, std::string_view key, MonotonicTime now) const;
  Rank rank(const Entry& entry, MonotonicTime now) const;
  bool is_suspect(const PasswordCheck& check) const;
  Error refusal(const PasswordCheck& check) const;
  void refuse(Entries::iterator entry, std::vector<Refusal>& refusals);
  std::vector<PasswordWaiter> remove(Entries::iterator entry);
  Entries::iterator last();
  void count_failure(Sources& sources, const std::string& key);

  const Clock& clock_;
  const Limits limits_;
  std::chrono::milliseconds lifetime_;
  Entries entries_;  // in the order of their coming
  std::unordered_map<std::string, Entries::iterator> by_key_;
  std::size_t waiting_ = 0;  // entries that are not running
  std::size_t bytes_ = 0;
  std::size_t running_suspects_ = 0;
  std::uint64_t served_ = 0;
  Sources addresses_;
  Sources names_;
  LruMap<bool> known_;  // addresses with names that logged in from them
};

}  // namespace divan::api
