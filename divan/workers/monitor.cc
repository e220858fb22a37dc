#include "divan/workers/monitor.h"

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan::workers {
namespace {

// Heartbeats per timeout: two of them may be late or lost.
constexpr int kHeartbeatsPerTimeout = 3;
constexpr Duration kPauseAfterError = std::chrono::seconds(1);

}  // namespace

LocalWorker::LocalWorker(Monitor& monitor, std::uint64_t number, WorkerRef ref, std::string options,
                         Duration timeout, Load load)
    : monitor_(monitor),
      number_(number),
      options_(std::move(options)),
      timeout_(timeout),
      load_(std::move(load)),
      ref_(std::move(ref)) {}

LocalWorker::~LocalWorker() { monitor_.forget(*this); }

WorkerRef LocalWorker::ref() const {
  std::lock_guard lock(mutex_);
  return ref_;
}

Monitor::Monitor(kv::Database& store, Registry& registry, const Clock& clock, Rng& rng)
    : store_(store),
      registry_(registry),
      clock_(clock),
      rng_(rng),
      observer_(store, registry, clock),
      loop_(clock, "workers", [this] { return step(); }) {}

void Monitor::start() { loop_.start(); }

bool Monitor::woken() const { return loop_.notifier()->notified(); }

std::unique_ptr<LocalWorker> Monitor::add(std::string_view role, std::string_view id,
                                          std::string_view options, Duration timeout, Load load) {
  WorkerRef ref =
      store_.run([&](kv::Transaction& tx) { return registry_.add(tx, role, id, options, timeout); });
  std::unique_ptr<LocalWorker> worker;
  {
    std::lock_guard lock(mutex_);
    worker.reset(
        new LocalWorker(*this, ++added_, std::move(ref), std::string(options), timeout, std::move(load)));
    const bool is_new = local_.emplace(worker.get(), clock_.now() + timeout / kHeartbeatsPerTimeout).second;
    DIVAN_CHECK(is_new, "two workers have the number {}", added_);
  }
  loop_.notify();
  return worker;
}

void Monitor::forget(LocalWorker& worker) {
  {
    std::lock_guard step(stepping_);
    std::lock_guard lock(mutex_);
    local_.erase(&worker);
  }
  try {
    store_.run([&](kv::Transaction& tx) {
      if (registry_.is_alive(tx, worker.ref())) registry_.remove(tx, worker.ref());
    });
  } catch (const std::exception& error) {
    log::warning("Worker {}/{} cannot be unregistered: {}", worker.ref().role, worker.ref().id, error.what());
  }
}

MonotonicTime Monitor::step() {
  std::lock_guard step(stepping_);
  loop_.notifier()->clear();
  const MonotonicTime now = clock_.now();
  try {
    // First the heartbeats: this process may have been frozen, and other processes would evict its workers.
    const MonotonicTime next_heartbeat = send_heartbeats(now);
    if (observer_.due()) observer_.poll(own(), [notifier = loop_.notifier()] { notifier->notify(); });
    return std::min(next_heartbeat, observer_.next());
  } catch (const std::exception& error) {
    log::error("Heartbeats of workers cannot be read or written: {}", error.what());
  }
  return now + kPauseAfterError;
}

std::map<WorkerRef, Duration> Monitor::silences(std::string_view role) const {
  std::lock_guard step(stepping_);
  return observer_.silences(role);
}

std::set<WorkerRef> Monitor::own() const {
  std::lock_guard lock(mutex_);
  std::set<WorkerRef> own;
  for (const auto& [worker, next] : local_) own.insert(worker->ref());
  return own;
}

MonotonicTime Monitor::send_heartbeats(MonotonicTime now) {
  std::vector<LocalWorker*> due;
  MonotonicTime next = MonotonicTime::max();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [worker, at] : local_) {
      if (at <= now) {
        due.push_back(worker);
      } else {
        next = std::min(next, at);
      }
    }
  }
  if (due.empty()) return next;
  std::map<LocalWorker*, std::string> loads;
  for (LocalWorker* worker : due) {
    if (worker->load_) loads[worker] = worker->load_();
  }
  const auto lost = store_.run([&](kv::Transaction& tx) {
    std::vector<LocalWorker*> gone;
    for (LocalWorker* worker : due) {
      const auto load = loads.find(worker);
      if (!registry_.heartbeat(tx, worker->ref())) {
        gone.push_back(worker);
      } else if (load != loads.end()) {
        registry_.set_load(tx, worker->ref(), load->second);
      }
    }
    return gone;
  });
  {
    std::lock_guard lock(mutex_);
    for (LocalWorker* worker : due) {
      // Jitter spreads the heartbeats of processes that started at the same time.
      const Duration interval = worker->timeout_ / kHeartbeatsPerTimeout;
      const auto jitter = rng_.below(static_cast<std::uint64_t>(interval.count() / 4) + 1);
      const MonotonicTime at = now + interval - Duration(static_cast<std::int64_t>(jitter));
      const auto local = local_.find(worker);
      DIVAN_CHECK(local != local_.end(), "a heartbeat was sent for a worker that was removed");
      DIVAN_CHECK(at > now, "a heartbeat is due again at once");
      local->second = at;
      next = std::min(next, at);
    }
  }
  for (LocalWorker* worker : lost) {
    const WorkerRef old = worker->ref();
    log::warning("Worker {}/{} was evicted and registers again.", old.role, old.id);
    WorkerRef fresh = store_.run([&](kv::Transaction& tx) {
      return registry_.add(tx, old.role, old.id, worker->options_, worker->timeout_);
    });
    std::lock_guard lock(worker->mutex_);
    worker->ref_ = std::move(fresh);
  }
  return next;
}

}  // namespace divan::workers
