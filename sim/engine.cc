#include "sim/engine.h"

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>

namespace divan::sim {

using kv::embedded::EmbeddedDatabase;
using kv::embedded::SimulatedDisk;

// The environment of RocksDB. Background work is done when the store is opened, and at no other time: flushes
// on a thread that is waited for, compactions on the thread that opens it.
class EmbeddedStore::Machine final : public rocksdb::EnvWrapper {
 public:
  explicit Machine(const std::shared_ptr<SimulatedDisk>& disk) : Machine(rocksdb::NewCompositeEnv(disk)) {}

  void Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                void (*unschedule)(void*)) override {
    std::lock_guard lock(mutex_);
    if (priority != Priority::HIGH)
      return compactions_[priority].push_back({*this, function, unschedule, argument});
    ++flushes_;
    EnvWrapper::Schedule([](void* job) { end(job, &Job::function); },
                         new Job{*this, function, unschedule, argument}, priority, tag,
                         [](void* job) { end(job, &Job::unschedule); });
  }
  int UnSchedule(void* tag, Priority priority) override {
    if (priority == Priority::HIGH) return EnvWrapper::UnSchedule(tag, priority);
    int removed = 0;
    for (; const auto job = take_compaction(priority); ++removed) {
      if (job->unschedule != nullptr) job->unschedule(job->argument);
    }
    return removed;
  }
  // RocksDB waits for a second after a failure, which is a power cut here.
  void SleepForMicroseconds(int) override {}

  void run_compactions() {
    for (const auto priority : {Priority::LOW, Priority::BOTTOM}) {
      while (const auto job = take_compaction(priority)) job->function(job->argument);
    }
  }
  void wait_for_flushes() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return flushes_ == 0; });
  }

 private:
  struct Job {
    Machine& machine;
    void (*function)(void*);
    void (*unschedule)(void*);
    void* argument;
  };

  explicit Machine(std::unique_ptr<rocksdb::Env> env) : EnvWrapper(env.get()), env_(std::move(env)) {}

  // Runs or drops a flush.
  static void end(void* flush, void (*Job::*how)(void*)) {
    const std::unique_ptr<Job> job(static_cast<Job*>(flush));
    if (job.get()->*how != nullptr) (job.get()->*how)(job->argument);
    std::lock_guard lock(job->machine.mutex_);
    --job->machine.flushes_;
    job->machine.changed_.notify_all();
  }
  std::optional<Job> take_compaction(Priority priority) {
    std::lock_guard lock(mutex_);
    auto& queue = compactions_[priority];
    if (queue.empty()) return std::nullopt;
    const std::optional<Job> job(queue.front());
    queue.pop_front();
    return job;
  }

  std::unique_ptr<rocksdb::Env> env_;
  // Of RocksDB's background threads, which are no tasks of the world. No other mutex is locked while this one
  // is held.
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::map<Priority, std::list<Job>> compactions_;
  int flushes_ = 0;
};

EmbeddedStore::EmbeddedStore(Process& process, Rng& rng)
    : process_(process),
      rng_(rng),
      disk_(std::make_shared<SimulatedDisk>()),
      machine_(std::make_unique<Machine>(disk_)) {
  open();
}

EmbeddedStore::~EmbeddedStore() = default;

void EmbeddedStore::open() {
  database_ = std::make_unique<EmbeddedDatabase>(
      kv::embedded::Options{.directory = "/disk/store", .cache_bytes = 1 << 20, .env = machine_.get()},
      *process_.clock, *process_.rng);
  machine_->wait_for_flushes();
  machine_->run_compactions();
}

void EmbeddedStore::keep_power() {
  if (!is_cut()) disk_->cut_after(UINT64_MAX / 2);
}

int EmbeddedStore::restart(std::uint64_t interrupted) {
  database_.reset();
  int cuts = 0;
  for (;;) {
    if (is_cut()) {
      ++cuts;
      disk_->power_up(rng_);
      off_ = false;
    }
    keep_power();
    if (happens(rng_, interrupted)) disk_->cut_after(rng_.below(40));
    try {
      open();
      if (!is_cut()) return cuts;
      database_.reset();
    } catch (const std::exception&) {
      if (!is_cut()) throw;
    }
  }
}

}  // namespace divan::sim
