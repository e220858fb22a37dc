#include "divan/workers/observer.h"

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan::workers {
namespace {

// Reads per timeout: by the closest observers, if the timeout is short, and by all others.
constexpr int kCloseReadsPerTimeout = 4;
constexpr int kOtherReadsPerTimeout = 2;
// A read that becomes due within this part of its interval is made together with those that are due.
constexpr int kEarlyPart = 2;
// How often the membership is read if the store has no watch left.
constexpr Duration kUnwatchedInterval = std::chrono::seconds(2);

bool has_ended(const kv::Watch& watch) { return watch.fired() || watch.cancelled(); }

Duration interval(Duration timeout, bool closely) {
  return closely ? std::min(kMaxPollInterval, timeout / kCloseReadsPerTimeout)
                 : timeout / kOtherReadsPerTimeout;
}

}  // namespace

bool Observer::due() const { return clock_.now() >= next_ || (watch_ != nullptr && has_ended(*watch_)); }

void Observer::poll(const std::set<WorkerRef>& own, const std::function<void()>& on_change) {
  const MonotonicTime started = clock_.now();
  const auto heartbeats = read(own, started, on_change);
  const MonotonicTime ended = clock_.now();
  for (auto& [ref, observation] : observations_) {
    if (!is_due(observation, started)) continue;
    const auto counter = heartbeats.find(ref);
    if (counter == heartbeats.end() || observation.counter != counter->second) {
      observation.silence = {};
    } else {
      const Duration waited = observation.waited(started);
      DIVAN_CHECK(waited >= Duration(0), "a worker's silence grows by {} ns", waited.count());
      observation.silence += waited;
    }
    // `divan verify` reports workers without a heartbeat.
    observation.counter = counter == heartbeats.end() ? -1 : counter->second;
    observation.read_at = ended;
    if (observation.silence >= observation.timeout) evict(ref, observation);
    schedule(observation);
  }
  next_ = watch_ == nullptr ? ended + kUnwatchedInterval : MonotonicTime::max();
  for (const auto& [ref, observation] : observations_) next_ = std::min(next_, observation.next);
}

std::map<WorkerRef, std::int64_t> Observer::read(const std::set<WorkerRef>& own, MonotonicTime now,
                                                 const std::function<void()>& on_change) {
  const bool watches = watch_ != nullptr && !has_ended(*watch_);
  std::shared_ptr<kv::Watch> watch;
  std::map<WorkerRef, std::int64_t> counters;
  store_.run([&](kv::Transaction& tx) {
    counters.clear();
    watch = watches ? nullptr : registry_.watch_all(tx);
    registry_.refresh(tx, roster_);
    follow_roster(own);
    for (auto& [ref, counter] : registry_.heartbeats(tx, due_names(now), roster_))
      counters.emplace(std::move(ref), counter);
  });
  if (!watches) {
    watch_ = std::move(watch);
    if (watch_ != nullptr) watch_->on_end(on_change);
    remove_empty_roles();
  }
  return counters;
}

// Drops the observations of workers that are gone, and adds those of new ones.
void Observer::follow_roster(const std::set<WorkerRef>& own) {
  if (followed_ == roster_.version && own == own_) return;
  const Ring ring(roster_);
  std::string_view node;
  for (const auto& ref : own) {
    if (ref.role == kNodeRole && ring.has(ref.id)) node = ref.id;
  }
  Observations present;
  for (const auto& [role, members] : roster_.roles) {
    for (const auto& [id, entry] : members->workers) {
      WorkerRef ref{role, id, entry.incarnation};
      if (own.contains(ref)) continue;
      const auto known = observations_.find(ref);
      Observation observation = known == observations_.end() ? Observation() : known->second;
      observation.timeout = entry.timeout;
      observation.closely = node.empty() || ring.observes(node, role, id);
      schedule(observation);
      present.emplace(std::move(ref), observation);
    }
  }
  observations_ = std::move(present);
  own_ = own;
  followed_ = roster_.version;
}

std::map<WorkerRef, Duration> Observer::silences(std::string_view role) const {
  const MonotonicTime now = clock_.now();
  std::map<WorkerRef, Duration> silences;
  for (auto it = observations_.lower_bound({std::string(role), "", ""});
       it != observations_.end() && it->first.role == role; ++it) {
    const auto& observation = it->second;
    Duration& silence = silences[it->first];
    if (observation.read_at != MonotonicTime::min()) silence = observation.silence + observation.waited(now);
  }
  return silences;
}

void Observer::remove_empty_roles() {
  for (const auto& [role, members] : roster_.roles) {
    if (!members->workers.empty()) continue;
    store_.run([&, &empty = role](kv::Transaction& tx) { registry_.remove_if_empty(tx, empty); });
  }
  std::erase_if(roster_.roles, [](const auto& role) { return role.second->workers.empty(); });
}

bool Observer::is_due(const Observation& observation, MonotonicTime now) const {
  return observation.next - interval(observation.timeout, observation.closely) / kEarlyPart <= now;
}

// Returns them sorted, as the observations are.
std::vector<Registry::Name> Observer::due_names(MonotonicTime now) const {
  std::vector<Registry::Name> names;
  for (const auto& [ref, observation] : observations_) {
    if (is_due(observation, now)) names.push_back({ref.role, ref.id});
  }
  return names;
}

void Observer::schedule(Observation& observation) const {
  if (observation.read_at == MonotonicTime::min()) {
    observation.next = {};  // at once
    return;
  }
  const Duration left = std::max(observation.timeout - observation.silence, Duration(1));
  observation.next = observation.read_at + std::min(left, interval(observation.timeout, observation.closely));
}

void Observer::evict(const WorkerRef& ref, Observation& observation) {
  DIVAN_CHECK(!own_.contains(ref), "the process evicts its own worker");
  DIVAN_CHECK(observation.silence >= observation.timeout, "a worker is evicted after {} ns of {}",
              observation.silence.count(), observation.timeout.count());
  try {
    if (store_.run([&](kv::Transaction& tx) { return registry_.evict(tx, {ref, observation.counter}); })) {
      log::warning("Worker {}/{} sent no heartbeat for its timeout and was evicted.", ref.role, ref.id);
    }
    // If it was not evicted, the next read finds another counter.
    observation.silence = {};
  } catch (const std::exception& error) {
    log::error("Worker {}/{} sends no heartbeats and cannot be evicted: {}", ref.role, ref.id, error.what());
    // Try again after an interval.
    observation.silence = observation.timeout - interval(observation.timeout, observation.closely);
  }
}

}  // namespace divan::workers
