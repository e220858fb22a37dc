#include "divan/workers/monitor.h"

#include "divan/base/log.h"

namespace divan::workers {
namespace {

// Heartbeats a timeout: a worker may be late by two of them.
constexpr int kHeartbeatsPerTimeout = 3;
// How often everybody's heartbeats are looked at: this part of the shortest timeout, within bounds.
constexpr int kLooksPerTimeout = 4;
constexpr Duration kMaxLookInterval = std::chrono::seconds(2);

}  // namespace

LocalWorker::LocalWorker(Monitor& monitor, WorkerRef ref, std::string options, Duration timeout)
    : monitor_(monitor), options_(std::move(options)), timeout_(timeout), ref_(std::move(ref)) {}

LocalWorker::~LocalWorker() { monitor_.forget(*this); }

WorkerRef LocalWorker::ref() const {
  std::lock_guard lock(mutex_);
  return ref_;
}

Monitor::Monitor(kv::Database& store, Registry& registry, const Clock& clock, Rng& rng)
    : store_(store), registry_(registry), clock_(clock), rng_(rng) {}

Monitor::~Monitor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<LocalWorker> Monitor::add(std::string_view role, std::string_view id,
                                          std::string_view options, Duration timeout) {
  WorkerRef ref =
      store_.run([&](kv::Transaction& tx) { return registry_.add(tx, role, id, options, timeout); });
  std::unique_ptr<LocalWorker> worker(new LocalWorker(*this, std::move(ref), std::string(options), timeout));
  std::lock_guard lock(mutex_);
  local_.emplace(worker.get(), clock_.now() + timeout / kHeartbeatsPerTimeout);
  woken_ = true;
  changed_.notify_all();
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
  } catch (const Error& error) {
    log::warning("Worker {}/{} could not be unregistered: {}", worker.ref().role, worker.ref().id,
                 error.what());
  }
}

void Monitor::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "workers");
}

void Monitor::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    lock.unlock();
    const MonotonicTime next = step();
    lock.lock();
    clock_.wait_until(lock, changed_, next, [this] { return stopping_ || woken_; });
  }
}

MonotonicTime Monitor::step() {
  std::lock_guard step(stepping_);
  const MonotonicTime now = clock_.now();
  Duration interval = kMaxLookInterval;
  try {
    // First our own: a process that was frozen does not evict itself when it wakes up.
    send_heartbeats(now);
    interval = std::min(interval, observe() / kLooksPerTimeout);
  } catch (const Error& error) {
    log::error("The workers' heartbeats could not be read or written: {}", error.what());
  }
  return now + interval;
}

void Monitor::send_heartbeats(MonotonicTime now) {
  std::vector<LocalWorker*> due;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [worker, next] : local_) {
      if (next <= now) due.push_back(worker);
    }
  }
  if (due.empty()) return;
  const auto lost = store_.run([&](kv::Transaction& tx) {
    std::vector<LocalWorker*> gone;
    for (LocalWorker* worker : due) {
      if (!registry_.heartbeat(tx, worker->ref())) gone.push_back(worker);
    }
    return gone;
  });
  {
    std::lock_guard lock(mutex_);
    for (LocalWorker* worker : due) {
      // Some jitter, so that a thousand processes that started together do not stay together.
      const Duration interval = worker->timeout_ / kHeartbeatsPerTimeout;
      const auto jitter = rng_.below(static_cast<std::uint64_t>(interval.count() / 4) + 1);
      local_[worker] = now + interval - Duration(static_cast<std::int64_t>(jitter));
    }
  }
  for (LocalWorker* worker : lost) {
    const WorkerRef old = worker->ref();
    log::warning("Worker {}/{} was evicted; it registers again.", old.role, old.id);
    WorkerRef fresh = store_.run([&](kv::Transaction& tx) {
      return registry_.add(tx, old.role, old.id, worker->options_, worker->timeout_);
    });
    std::lock_guard lock(worker->mutex_);
    worker->ref_ = std::move(fresh);
  }
}

Duration Monitor::observe() {
  std::map<WorkerRef, Observation> seen;
  Duration shortest = kMaxTimeout;
  // The store may take its time, or this process may be frozen in between: what was read stands still from
  // the answer on at the earliest, and did until it was asked for at the least.
  const MonotonicTime asked = clock_.now();
  const auto heartbeats = store_.run([&](kv::Transaction& tx) { return registry_.heartbeats(tx); });
  const MonotonicTime answered = clock_.now();
  for (const auto& heartbeat : heartbeats) {
    shortest = std::min(shortest, heartbeat.timeout);
    Observation observation{heartbeat.counter, answered};
    const auto before = observed_.find(heartbeat.ref);
    if (before != observed_.end() && before->second.counter == heartbeat.counter)
      observation = before->second;
    if (asked - observation.since < heartbeat.timeout) {
      seen.emplace(heartbeat.ref, observation);
      continue;
    }
    try {
      if (!store_.run([&](kv::Transaction& tx) { return registry_.evict(tx, heartbeat); })) continue;
      log::warning("Worker {}/{} was silent for its timeout and is evicted.", heartbeat.ref.role,
                   heartbeat.ref.id);
    } catch (const Error& error) {
      log::error("Worker {}/{} is silent and cannot be evicted: {}", heartbeat.ref.role, heartbeat.ref.id,
                 error.what());
      seen.emplace(heartbeat.ref, observation);
    }
  }
  observed_ = std::move(seen);
  return shortest;
}

}  // namespace divan::workers
