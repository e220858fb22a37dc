#include "divan/api/password_queue.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "divan/base/check.h"
#include "divan/base/digest.h"

namespace divan::api {
namespace {

constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kNetworkBytes = 8;

}  // namespace

std::string address_key(std::string_view address) {
  in6_addr v6{};
  if (inet_pton(AF_INET6, std::string(address).c_str(), &v6) != 1) return std::string(address);
  const auto* bytes = reinterpret_cast<const char*>(v6.s6_addr);
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return {bytes, kNetworkBytes};
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, bytes + 12, text.data(), text.size());
}

std::string name_key(std::string_view name) { return sha256(name, kKeyBytes); }

PasswordQueue::PasswordQueue(const Clock& clock, const Limits& limits)
    : clock_(clock),
      limits_(limits),
      lifetime_(limits.lifetime),
      addresses_(limits.remembered),
      names_(limits.remembered),
      known_(limits.remembered) {}

PasswordQueue::Source PasswordQueue::source(const Sources& sources, std::string_view key,
                                            MonotonicTime now) const {
  const Source* found = sources.find(key);
  if (found == nullptr) return {};
  Source source = *found;
  if (now - source.last_failure >= lifetime_) source.failures = 0;
  return source;
}

PasswordQueue::Rank PasswordQueue::rank(const Entry& entry, MonotonicTime now) const {
  const Source address = source(addresses_, entry.check.address, now);
  const Source name = source(names_, entry.check.name, now);
  const bool known = known_.find(entry.pair) != nullptr;
  return {address.failures, name.failures, known ? 0U : 1U, address.last_served, name.last_served};
}

bool PasswordQueue::is_suspect(const PasswordCheck& check) const {
  return source(addresses_, check.address, clock_.now()).failures >= limits_.suspect_failures;
}

std::vector<PasswordQueue::Refusal> PasswordQueue::add(PasswordCheck check, PasswordWaiter waiter) {
  std::vector<Refusal> refusals;
  const auto found = by_key_.find(check.key);
  if (found != by_key_.end()) {
    if (bytes_ + waiter.bytes > limits_.bytes) {
      refusals.push_back({std::move(waiter), refusal(check)});
      return refusals;
    }
    Entry& entry = *found->second;
    entry.waiters.push_back(std::move(waiter));
    bytes_ += entry.waiters.back().bytes;
    // It is ranked by the best of its addresses.
    Entry other{.check = {.address = std::move(check.address), .name = std::move(check.name)}};
    other.pair = other.check.address + other.check.name;
    if (!entry.running && rank(other, clock_.now()) < rank(entry, clock_.now())) {
      entry.check.address = std::move(other.check.address);
      entry.pair = std::move(other.pair);
    }
    return refusals;
  }
  std::string pair = check.address + check.name;
  Entries added;
  added.push_back({.check = std::move(check), .pair = std::move(pair), .since = clock_.now()});
  added.back().waiters.push_back(std::move(waiter));
  by_key_.emplace(added.back().check.key, added.begin());
  // The next three do not throw, so that the counts always agree with the entries.
  bytes_ += added.back().waiters.back().bytes;
  ++waiting_;
  entries_.splice(entries_.end(), added);
  // A request that exceeds the limit may wait if it is the only one.
  const auto is_full = [this] {
    return waiting_ > limits_.checks || (bytes_ > limits_.bytes && entries_.size() > 1 && waiting_ > 0);
  };
  if (is_full()) refusals = expire();
  while (is_full()) refuse(last(), refusals);
  return refusals;
}

std::vector<PasswordQueue::Refusal> PasswordQueue::expire() {
  std::vector<Refusal> refusals;
  const auto now = clock_.now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto present = entry++;
    if (present->running) continue;
    std::erase_if(present->waiters, [this](const PasswordWaiter& waiter) {
      const bool disconnected = waiter.disconnected && waiter.disconnected();
      if (disconnected) subtract_bytes(waiter);
      return disconnected;
    });
    if (present->waiters.empty()) {
      remove(present);
    } else if (now - present->since >= limits_.wait) {
      refuse(present, refusals);
    }
  }
  return refusals;
}

std::optional<PasswordCheck> PasswordQueue::next() {
  const auto now = clock_.now();
  const bool with_suspects = running_suspects_ < limits_.max_running_suspects;
  auto best = entries_.end();
  Rank best_rank{};
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->running || (!with_suspects && is_suspect(entry->check))) continue;
    const Rank its = rank(*entry, now);
    if (best != entries_.end() && its >= best_rank) continue;
    best = entry;
    best_rank = its;
  }
  if (best == entries_.end()) return std::nullopt;
  best->running = true;
  best->suspect = is_suspect(best->check);
  if (best->suspect) ++running_suspects_;
  DIVAN_CHECK(waiting_ > 0, "a check begins, but none waits");
  --waiting_;
  ++served_;
  addresses_[best->check.address].last_served = served_;
  names_[best->check.name].last_served = served_;
  return best->check;
}

PasswordQueue::Entries::iterator PasswordQueue::last() {
  const auto now = clock_.now();
  auto worst = entries_.end();
  Rank worst_rank{};
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->running) continue;
    const Rank its = rank(*entry, now);
    if (worst != entries_.end() && its < worst_rank) continue;
    worst = entry;
    worst_rank = its;
  }
  return worst;
}

void PasswordQueue::count_failure(Sources& sources, const std::string& key) {
  Source& source = sources[key];
  const auto now = clock_.now();
  if (now - source.last_failure >= lifetime_) source.failures = 0;
  ++source.failures;
  source.last_failure = now;
}

std::vector<PasswordWaiter> PasswordQueue::finish(const PasswordCheck& check, std::optional<bool> right) {
  if (right == true) known_[check.address + check.name] = true;
  if (right == false) {
    count_failure(addresses_, check.address);
    count_failure(names_, check.name);
  }
  return remove(by_key_.at(check.key));
}

Error PasswordQueue::refusal(const PasswordCheck& check) const {
  const auto now = clock_.now();
  if (source(addresses_, check.address, now).failures > 0 || source(names_, check.name, now).failures > 0) {
    return {429, "too_many_requests",
            "Too many passwords for this name or from this address were wrong; try again later."};
  }
  return {503, "service_unavailable", "Too many passwords are being checked; try again later."};
}

void PasswordQueue::refuse(Entries::iterator entry, std::vector<Refusal>& refusals) {
  const Error error = refusal(entry->check);
  for (auto& waiter : remove(entry)) refusals.push_back({std::move(waiter), error});
}

void PasswordQueue::subtract_bytes(const PasswordWaiter& waiter) {
  DIVAN_CHECK(bytes_ >= waiter.bytes, "a request of {} bytes leaves a queue of {} bytes", waiter.bytes,
              bytes_);
  bytes_ -= waiter.bytes;
}

std::vector<PasswordWaiter> PasswordQueue::remove(Entries::iterator entry) {
  auto waiters = std::move(entry->waiters);
  for (const auto& waiter : waiters) subtract_bytes(waiter);
  if (entry->running) {
    DIVAN_CHECK(!entry->suspect || running_suspects_ > 0, "a check of a suspect ends, but none runs");
    if (entry->suspect) --running_suspects_;
  } else {
    DIVAN_CHECK(waiting_ > 0, "a waiting check is removed, but none waits");
    --waiting_;
  }
  by_key_.erase(entry->check.key);
  entries_.erase(entry);
  return waiters;
}

std::vector<PasswordWaiter> PasswordQueue::clear() {
  std::vector<PasswordWaiter> all;
  for (auto& entry : entries_) {
    for (auto& waiter : entry.waiters) all.push_back(std::move(waiter));
    entry.waiters.clear();
  }
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto present = entry++;
    if (!present->running) remove(present);
  }
  bytes_ = 0;
  return all;
}

}  // namespace divan::api
