#include "divan/jobs/wait.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/notifier.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// The most jobs that are read in one transaction.
constexpr std::size_t kReadAtOnce = 100;
// How often jobs are read that cannot be watched.
constexpr Duration kPollInterval = std::chrono::seconds(1);

}  // namespace

const std::set<State>& Wait::ended() {
  static const std::set<State> states{State::finished, State::failed, State::cancelled};
  return states;
}

Wait::Wait(Queue& queue, kv::Database& store, const std::vector<std::pair<std::string, std::string>>& jobs,
           std::set<State> states)
    : queue_(queue), store_(store), states_(std::move(states)), watches_(jobs.size()) {
  if (jobs.empty() || jobs.size() > kMaxAwaitedJobs)
    throw bad_request(
        fmt::format("A wait for {} jobs; expected 1 to {} jobs.", jobs.size(), kMaxAwaitedJobs));
  if (states_.empty()) throw bad_request("A wait for no state; expected at least one.");
  for (const auto& [type, id] : jobs) jobs_.push_back({type, id});
}

std::size_t Wait::read(const std::function<void()>& wake) {
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const auto& watch = watches_[i];
    if (!jobs_[i].reached && (watch == nullptr || watch->fired() || watch->cancelled())) changed.push_back(i);
  }
  must_poll_ = false;
  for (std::size_t begin = 0; begin < changed.size(); begin += kReadAtOnce)
    read_some(std::span(changed).subspan(begin, std::min(kReadAtOnce, changed.size() - begin)));
  // Also the watches of earlier calls, which had another callback.
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (!jobs_[i].reached && watches_[i] != nullptr) watches_[i]->on_end(wake);
  }
  return static_cast<std::size_t>(std::ranges::count(jobs_, true, &Awaited::reached));
}

void Wait::read_some(std::span<const std::size_t> which) {
  store_.run([&](kv::Transaction& tx) {
    if (tx.is_remote()) {
      kv::Prefetch reads;
      for (const std::size_t i : which) prefetch_job(reads, jobs_[i].type, jobs_[i].id);
      tx.prefetch(reads);
    }
    for (const std::size_t i : which) {
      Awaited& awaited = jobs_[i];
      awaited.job = queue_.find(tx, awaited.type, awaited.id, kv::Isolation::snapshot);
      awaited.reached = !awaited.job || states_.contains(awaited.job->state);
      watches_[i] = nullptr;
      if (awaited.reached) continue;
      watches_[i] = queue_.watch(tx, awaited.type, awaited.id);
      must_poll_ |= watches_[i] == nullptr;
    }
  });
}

std::size_t Wait::wait(const Clock& clock, std::size_t count, MonotonicTime deadline) {
  const auto notifier = std::make_shared<Notifier>();
  for (;;) {
    const std::size_t reached = read([notifier] { notifier->notify(); });
    const MonotonicTime now = clock.now();
    if (reached >= std::min(count, jobs_.size()) || now >= deadline) return reached;
    notifier->wait_until(clock, must_poll_ ? std::min(deadline, now + kPollInterval) : deadline);
  }
}

}  // namespace divan::jobs
