#include "divan/jobs/maintenance.h"

#include "divan/base/log.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// How often a type is looked at: this part of its timeout, within bounds.
constexpr int kLooksPerTimeout = 4;
constexpr Duration kMaxLookInterval = std::chrono::seconds(5);
// The oldest entries of activity of a type that are looked at in one step.
constexpr std::size_t kMaxLookedAt = 10'000;
constexpr std::size_t kPrunedPerTransaction = 500;

}  // namespace

Maintenance::~Maintenance() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Maintenance::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "jobs");
}

void Maintenance::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const MonotonicTime next = step();
    lock.lock();
    clock_.wait_until(lock, changed_, next, [this] { return stopping_; });
  }
}

MonotonicTime Maintenance::step() {
  std::lock_guard step(stepping_);
  const MonotonicTime started = clock_.now();
  Duration interval = kMaxLookInterval;
  std::vector<std::string> types;
  try {
    types = store_.run([&](kv::Transaction& tx) { return queue_.types(tx); });
  } catch (const Error& error) { log::error("The job types could not be read: {}", error.what()); }
  for (const auto& type : types) {
    try {
      const auto settings = store_.run([&](kv::Transaction& tx) { return queue_.find_type(tx, type); });
      if (!settings) continue;
      interval = std::min(interval, settings->timeout / kLooksPerTimeout);
      take_back_silent(type, settings->timeout);
      while (store_.run([&](kv::Transaction& tx) { return queue_.prune(tx, type, kPrunedPerTransaction); }) >
             0) {}
    } catch (const Error& error) {
      log::error("Jobs of type {} could not be looked after: {}", type, error.what());
    }
  }
  std::erase_if(seen_, [&](const auto& entry) {
    return std::find(types.begin(), types.end(), entry.first) == types.end();
  });
  return started + interval;
}

void Maintenance::take_back_silent(const std::string& type, Duration timeout) {
  const JobKey prefix = JobKey("act").string(type).integer(kShard);
  SeenJobs& before = seen_[type];
  SeenJobs present;
  std::vector<std::string> silent;
  // The store may take its time, or this process may be frozen in between: what was read stands still from
  // the answer on at the earliest, and did until it was asked for at the least.
  const MonotonicTime asked = clock_.now();
  store_.run([&](kv::Transaction& tx) {
    present.clear();
    tx.scan(prefix.range(), {.limit = kMaxLookedAt, .isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view) {
              kv::tuple::Reader reader(key.substr(prefix.key().size()));
              const auto stamp = reader.take_versionstamp();
              auto id = reader.take_string();
              if (!stamp || !id) throw internal_error("A row of running jobs in the store is damaged.");
              const auto known = before.find(*id);
              const bool moved = known == before.end() || known->second.activity != *stamp;
              present.emplace(*std::move(id), moved ? Seen{*stamp, MonotonicTime::max()} : known->second);
              return true;
            });
  });
  const MonotonicTime answered = clock_.now();
  for (auto& [id, seen] : present) {
    seen.since = std::min(seen.since, answered);
    if (asked - seen.since >= timeout) silent.push_back(id);
  }
  for (const auto& id : silent) {
    const bool taken = store_.run([&](kv::Transaction& tx) {
      auto job = read_job(tx, type, id);
      if (!job || job->state != State::running || job->activity != present.at(id).activity) return false;
      take_back(queue_, tx, *job, Outcome::lost);
      return true;
    });
    if (taken) log::warning("Job {}/{} was silent for its timeout and is pending again.", type, id);
  }
  before = std::move(present);
}

}  // namespace divan::jobs
