#include "divan/api/password_checks.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/base/log.h"

namespace divan::api {
namespace {

constexpr std::size_t kMinThreads = 2;
// Maximum bytes of a name in the log.
constexpr std::size_t kMaxShown = 100;

// A digest that identifies name, password and hash.
std::string outcome_key(const PasswordRequest& request) {
  const auto& hash = request.hash;
  return sha256(fmt::format("{} {} {} {} {} {} {} {}{}{}{}{}", request.name.size(), request.password.size(),
                            hash.digest.size(), hash.key.size(), hash.salt.size(), hash.iterations,
                            hash.is_of_simple_hash, request.name, request.password, hash.digest, hash.key,
                            hash.salt));
}

std::string lockout_key(const PasswordCheck& check) {
  return check.address + check.name + sha256(check.hash.salt, 16);
}

// For the log.
std::string describe(const PasswordRequest& request) {
  return fmt::format("{} from {}", json::quoted(request.name.substr(0, kMaxShown)), request.address);
}

Error stopping_error() { return {503, "service_unavailable", "The server is stopping."}; }

}  // namespace

PasswordChecks::PasswordChecks(const Clock& clock, Options options)
    : clock_(clock),
      compare_(options.compare ? std::move(options.compare)
                               : [](const PasswordCheck& check) {
                                   return compare_password(check.password, check.hash, check.min_iterations)
                                       .equal;
                                 }),
      queue_(clock, options.limits),
      right_(options.remembered),
      wrong_(options.remembered),
      locked_(options.limits.remembered) {
  const std::size_t processors = std::thread::hardware_concurrency();
  const std::size_t threads = std::max(kMinThreads, options.threads > 0 ? options.threads : processors / 2);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "password");
  }
}

void PasswordChecks::configure(const LockoutSettings& settings) {
  std::lock_guard lock(mutex_);
  lockout_ = settings;
  queue_.set_lifetime(settings.lifetime);
}

std::optional<bool> PasswordChecks::check(const PasswordRequest& request, PasswordWaiter waiter) {
  const std::string key = outcome_key(request);
  std::vector<PasswordQueue::Refusal> refusals;
  {
    std::lock_guard lock(mutex_);
    if (right_.touch(key) != nullptr) return true;
    PasswordCheck check{.key = key,
                        .address = address_key(request.address),
                        .name = name_key(request.name),
                        .password = std::string(request.password),
                        .hash = request.hash,
                        .min_iterations = request.min_iterations,
                        .description = describe(request)};
    if (wrong_.touch(key) != nullptr) return false;
    check_lockout(lockout_key(check));
    if (stopping_) throw stopping_error();
    refusals = queue_.add(std::move(check), std::move(waiter));
    stats_.refused += refusals.size();
  }
  changed_.notify_one();
  refuse(refusals);
  return std::nullopt;
}

void PasswordChecks::check_lockout(const std::string& pair) const {
  if (lockout_.mode != LockoutSettings::Mode::enforce) return;
  const Failures* failures = locked_.find(pair);
  if (failures == nullptr || failures->count < lockout_.threshold ||
      clock_.now() - failures->last >= lockout_.lifetime)
    return;
  throw forbidden("Account is temporarily locked due to multiple authentication failures");
}

void PasswordChecks::count_failure(const PasswordCheck& check) {
  if (lockout_.mode == LockoutSettings::Mode::off) return;
  Failures& failures = locked_[lockout_key(check)];
  const auto now = clock_.now();
  if (now - failures.last >= lockout_.lifetime) failures.count = 0;
  ++failures.count;
  failures.last = now;
  if (failures.count == lockout_.threshold)
    log::warning("{} wrong passwords within {} ms for {}", failures.count, lockout_.lifetime.count(),
                 check.description);
}

void PasswordChecks::refuse(const std::vector<PasswordQueue::Refusal>& refusals) {
  for (const auto& refusal : refusals) refusal.waiter.done(&refusal.error);
}

void PasswordChecks::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    auto refusals = queue_.expire();
    stats_.refused += refusals.size();
    const auto check = queue_.next();
    if (!check && refusals.empty()) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    refuse(refusals);
    if (check) run(*check);
    lock.lock();
  }
}

void PasswordChecks::run(const PasswordCheck& check) {
  std::optional<bool> right;
  std::optional<Error> failure;
  try {
    right = compare_(check);
  } catch (const std::exception& error) { failure = internal_error(error.what()); }
  std::vector<PasswordWaiter> waiters;
  {
    std::lock_guard lock(mutex_);
    waiters = queue_.finish(check, right);
    if (right) {
      (*right ? right_ : wrong_)[check.key] = true;
      ++(*right ? stats_.right : stats_.wrong);
      if (!*right) count_failure(check);
    }
  }
  for (const auto& waiter : waiters) waiter.done(failure ? &*failure : nullptr);
}

void PasswordChecks::stop() {
  std::vector<PasswordWaiter> waiters;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiters = queue_.clear();
  }
  changed_.notify_all();
  const Error error = stopping_error();
  for (const auto& waiter : waiters) waiter.done(&error);
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

PasswordCheckStats PasswordChecks::stats() const {
  std::lock_guard lock(mutex_);
  auto stats = stats_;
  stats.waiting = queue_.waiting();
  return stats;
}

}  // namespace divan::api
