#include "divan/workers/observer.h"

#include "divan/base/log.h"

namespace divan::workers {
namespace {

// Readings per timeout: by the closest observers, where the timeout is short, and by all others.
constexpr int kCloseReadsPerTimeout = 4;
constexpr int kOtherReadsPerTimeout = 2;
// A reading that would be due within this part of its interval is made with the one that is due.
constexpr int kEarlyPart = 2;
// How often the membership is read where it cannot be watched.
constexpr Duration kUnwatchedInterval = std::chrono::seconds(2);

bool has_ended(const kv::Watch& watch) { return watch.fired() || watch.cancelled(); }

Duration interval(Duration timeout, bool closely) {
  return closely ? std::min(kMaxLookInterval, timeout / kCloseReadsPerTimeout)
                 : timeout / kOtherReadsPerTimeout;
}

}  // namespace

bool Observer::due() const { return clock_.now() >= next_ || (watch_ != nullptr && has_ended(*watch_)); }

void Observer::look(const std::set<WorkerRef>& own, const std::function<void()>& on_change) {
  const MonotonicTime asked = clock_.now();
  const auto heartbeats = read(own, asked, on_change);
  const MonotonicTime answered = clock_.now();
  for (auto& [ref, observation] : observations_) {
    if (!is_due(observation, asked)) continue;
    const auto counter = heartbeats.find(ref);
    if (counter == heartbeats.end() || observation.counter != counter->second) {
      observation.silence = {};
    } else {
      observation.silence += std::min(asked, observation.next) - observation.read_at;
    }
    // A worker without a heartbeat is what `divan verify` finds.
    observation.counter = counter == heartbeats.end() ? -1 : counter->second;
    observation.read_at = answered;
    if (observation.silence >= observation.timeout) evict(ref, observation);
    schedule(observation);
  }
  next_ = watch_ == nullptr ? answered + kUnwatchedInterval : MonotonicTime::max();
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

// Forgets who is gone, and begins to observe who has come.
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

// Sorted, as the observations are.
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
  try {
    if (store_.run([&](kv::Transaction& tx) { return registry_.evict(tx, {ref, observation.counter}); })) {
      log::warning("Worker {}/{} was silent for its timeout and is evicted.", ref.role, ref.id);
    }
    // If not, the next reading finds another counter.
    observation.silence = {};
  } catch (const Error& error) {
    log::error("Worker {}/{} is silent and cannot be evicted: {}", ref.role, ref.id, error.what());
    // Not again at once.
    observation.silence = observation.timeout - interval(observation.timeout, observation.closely);
  }
}

}  // namespace divan::workers
