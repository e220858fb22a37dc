#include "divan/workers/observer.h"

#include "divan/base/log.h"

namespace divan::workers {
namespace {

// Looks a timeout, where that is short.
constexpr int kLooksPerTimeout = 4;
// How often the membership is read where it cannot be watched.
constexpr Duration kUnwatchedInterval = std::chrono::seconds(2);

bool has_ended(const kv::Watch& watch) { return watch.fired() || watch.cancelled(); }

}  // namespace

bool Observer::due() const { return clock_.now() >= next_ || (watch_ != nullptr && has_ended(*watch_)); }

std::vector<Registry::Heartbeat> Observer::read(const std::function<void()>& on_change) {
  const bool watches = watch_ != nullptr && !has_ended(*watch_);
  auto heartbeats = store_.run([&](kv::Transaction& tx) {
    if (!watches) {
      watch_ = nullptr;
      try {
        watch_ = registry_.watch_all(tx);
      } catch (const kv::Error& error) {
        if (error.code() != kv::ErrorCode::too_many_watches) throw;
      }
    }
    return registry_.heartbeats(tx, timeouts_);
  });
  if (!watches && watch_ != nullptr) watch_->on_end(on_change);
  return heartbeats;
}

void Observer::look(const std::set<WorkerRef>& own, const std::function<void()>& on_change) {
  std::map<WorkerRef, Observation> seen;
  // The store may take its time, or this process may be frozen in between: what was read stands still from
  // the answer on at the earliest, and did until it was asked for at the least.
  const MonotonicTime asked = clock_.now();
  const auto heartbeats = read(on_change);
  const MonotonicTime answered = clock_.now();
  next_ = watch_ == nullptr ? answered + kUnwatchedInterval : MonotonicTime::max();
  for (const auto& heartbeat : heartbeats) {
    if (own.contains(heartbeat.ref)) continue;
    next_ = std::min(next_, answered + std::min(kMaxLookInterval, heartbeat.timeout / kLooksPerTimeout));
    Observation observation{heartbeat.counter, answered};
    const auto before = observed_.find(heartbeat.ref);
    if (before != observed_.end() && before->second.counter == heartbeat.counter)
      observation = before->second;
    const MonotonicTime silent_at = observation.since + heartbeat.timeout;
    if (asked < silent_at) {
      next_ = std::min(next_, std::max(silent_at, answered));
    } else if (evict(heartbeat)) {
      continue;
    }
    seen.emplace(heartbeat.ref, observation);
  }
  observed_ = std::move(seen);
}

bool Observer::evict(const Registry::Heartbeat& heartbeat) {
  const auto& [role, id, incarnation] = heartbeat.ref;
  try {
    if (store_.run([&](kv::Transaction& tx) { return registry_.evict(tx, heartbeat); })) {
      log::warning("Worker {}/{} was silent for its timeout and is evicted.", role, id);
    }
    return true;
  } catch (const Error& error) {
    log::error("Worker {}/{} is silent and cannot be evicted: {}", role, id, error.what());
    return false;
  }
}

}  // namespace divan::workers
