#include "divan/replicator/replicator.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "divan/base/error.h"
#include "divan/base/log.h"

namespace divan::replicator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long a replication works before others have their turns.
constexpr Duration kTurn = seconds(2);
// How often the jobs of running replications are read, to find those that were cancelled without a call of
// interrupt(), and how many in one transaction.
constexpr Duration kLookInterval = seconds(5);
constexpr std::size_t kLookAtOnce = 500;
// A thread without work ends after this time.
constexpr Duration kIdleTime = seconds(10);
// The most replications of a process, most of which wait for changes.
constexpr std::size_t kMostAccepted = 20'000;
// Of responses of other servers, before they are parsed; a replication may always have the share.
constexpr MemoryLimits kResponseMemory{.all = 128 << 20, .of_one = 128 << 20, .share = 1 << 20};

// Of requests that wait for changes: many wait, and get little.
constexpr long kWaitBufferBytes = 1024;

}  // namespace

RemoteOptions remote_options(const Config& config) {
  RemoteOptions options;
  const auto timeout = milliseconds(config.get_int(kSection, "connection_timeout", 30'000, 1, 3'600'000));
  options.http.connect_timeout = options.idle_timeout = timeout;
  options.retries = static_cast<int>(config.get_int(kSection, "retries_per_request", 5, 0, 100));
  options.http.verifies_certificates = config.get_bool(kSection, "verify_ssl_certificates", true);
  options.http.authorities_file = config.get(kSection, "ssl_trusted_certificates_file", "");
  options.http.certificate_file = config.get(kSection, "cert_file", "");
  options.http.key_file = config.get(kSection, "key_file", "");
  options.http.key_password = config.get(kSection, "password", "");
  return options;
}

Replicator::Replicator(const LocalStore& local, jobs::Queue& queue, workers::Monitor& monitor, Rng& rng,
                       const Config& config)
    : local_(local),
      queue_(queue),
      monitor_(monitor),
      rng_(rng),
      config_(config),
      waiter_({.thread_name = "replicator_wait", .buffer_bytes = kWaitBufferBytes}),
      response_memory_(kResponseMemory, MutexRank::response_memory),
      context_{
          local_, queue_, rng_, acceptor_,
          [this](const Endpoint& endpoint, const RemoteOptions& options, const std::atomic<bool>& stopped) {
            auto with_memory = options;
            with_memory.http.memory = &response_memory_;
            return connect(endpoint, with_memory, local_.clock, rng_, waiter_, stopped);
          }},
      acceptor_(queue, local.store, local.clock),
      loop_(local.clock, "replicator", [this] { return step(); }) {}

Replicator::~Replicator() {
  stop();
  if (acceptor_thread_.joinable()) acceptor_thread_.join();
  loop_.stop();
  loop_.join();
  for (auto& thread : threads_) thread.thread.join();
}

void Replicator::start(std::string_view worker_id) {
  worker_ = monitor_.add(kRole, worker_id, "{}");
  loop_.start();
  acceptor_thread_ = std::thread([this] { accept_jobs(); });
  pthread_setname_np(acceptor_thread_.native_handle(), "replicator_jobs");
}

void Replicator::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  acceptor_.interrupt();
  for (auto& [number, entry] : entries_) {
    entry.run->interrupt();
    wake(number, entry);
  }
  stopped_.notify_all();
  has_work_.notify_all();
}

void Replicator::interrupt(const std::string& id) {
  std::lock_guard lock(mutex_);
  for (auto& [number, entry] : entries_) {
    if (entry.run->job().job.id != id) continue;
    entry.run->interrupt();
    wake(number, entry);
  }
}

void Replicator::accept_jobs() {
  const std::vector<std::string> types{std::string(kJobType)};
  const auto pause = [&] {
    std::unique_lock lock(mutex_);
    local_.clock.wait_until(lock, stopped_, local_.clock.now() + seconds(1),
                            [this] { return stopping_.load(); });
  };
  while (!stopping_) {
    try {
      std::size_t accepted = 0;
      {
        std::lock_guard lock(mutex_);
        accepted = entries_.size();
      }
      if (accepted >= kMostAccepted) {
        pause();
        continue;
      }
      const auto worker = worker_->ref();
      auto jobs = acceptor_.accept(types,
                                   {.limit = std::min(kMostAccepted - accepted, jobs::kMaxAcceptLimit),
                                    .worker = workers::WorkerRef{worker.role, worker.id, {}}},
                                   local_.clock.now() + seconds(5));
      for (auto& job : jobs) {
        try {
          begin(job);
        } catch (const std::exception& error) {
          log::error("Replication {} cannot begin: {}", job.job.id, error.what());
          acceptor_.release_undelivered({&job, 1});
        }
      }
    } catch (const std::exception& error) {
      log::error("Cannot accept replications; retrying in a second: {}", error.what());
      pause();
    }
  }
}

void Replicator::begin(const jobs::AcceptedJob& job) {
  const auto remote = remote_options(config_);
  std::lock_guard lock(mutex_);
  const auto number = ++last_number_;
  // Called while anything is locked.
  auto woken = [wakes = wakes_, notifier = loop_.notifier(), number] {
    {
      std::lock_guard wakes_lock(wakes->mutex);
      wakes->numbers.push_back(number);
    }
    notifier->notify();
  };
  auto run = std::make_unique<Run>(context_, job, remote, std::move(woken));
  auto& entry = entries_[number];
  entry.run = std::move(run);
  if (stopping_) entry.run->interrupt();
  make_ready(number, entry);
}

// Makes those ready that were woken or whose time has come.
MonotonicTime Replicator::step() {
  std::vector<std::uint64_t> woken;
  {
    std::lock_guard lock(wakes_->mutex);
    woken.swap(wakes_->numbers);
  }
  {
    std::lock_guard lock(mutex_);
    for (const auto number : woken) {
      if (const auto found = entries_.find(number); found != entries_.end()) wake(number, found->second);
    }
    while (!waiting_.empty() && waiting_.begin()->first <= local_.clock.now()) {
      const auto number = waiting_.begin()->second;
      wake(number, entries_.at(number));
    }
    for (auto it = threads_.begin(); it != threads_.end();) {
      if (it->has_ended) it->thread.join();
      it = it->has_ended ? threads_.erase(it) : std::next(it);
    }
  }
  interrupt_cancelled();
  std::lock_guard lock(mutex_);
  if (ready_count_ > 0 && alive_ == 0) start_thread();
  return waiting_.empty() ? look_at_ : std::min(look_at_, waiting_.begin()->first);
}

// Those that were cancelled, or changed, by another process or a request that knows nothing of replications.
void Replicator::interrupt_cancelled() {
  if (local_.clock.now() < look_at_) return;
  look_at_ = local_.clock.now() + kLookInterval;
  std::vector<jobs::Attempt> attempts;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [number, entry] : entries_) {
      if (!entry.run->interrupted()) attempts.push_back(entry.run->job().attempt());
    }
  }
  for (std::span<const jobs::Attempt> rest = attempts; !rest.empty();) {
    const auto page = rest.first(std::min(rest.size(), kLookAtOnce));
    rest = rest.subspan(page.size());
    std::vector<std::string_view> ids;
    for (const auto& attempt : page) ids.push_back(attempt.id);
    std::vector<std::string> to_end;
    local_.store.run([&](kv::Transaction& tx) {
      to_end.clear();
      jobs::QueueCore::prefetch(tx, kJobType, ids);
      for (const auto& attempt : page) {
        const auto job = queue_.find(tx, kJobType, attempt.id, kv::Isolation::snapshot);
        if (!job || job->lock != attempt.lock || job->cancel || job->resubmit) to_end.push_back(attempt.id);
      }
    });
    for (const auto& id : to_end) interrupt(id);
  }
}

void Replicator::make_ready(std::uint64_t number, Entry& entry) {
  entry.state = Run::State::ready;
  const auto group = entry.run->group();
  auto& queue = ready_[group];
  if (queue.empty()) turns_.push_back(group);
  queue.push_back(number);
  ++ready_count_;
  has_work_.notify_one();
  if (ready_count_ > idle_ && alive_ < most_threads()) start_thread();
}

std::size_t Replicator::most_threads() const {
  return static_cast<std::size_t>(config_.get_int(kSection, kMaxJobs, kDefaultMaxJobs, 1, kMostMaxJobs));
}

// If there cannot be another thread, the others do the work, or step() tries again.
void Replicator::start_thread() {
  auto& thread = threads_.emplace_back();
  try {
    thread.thread = std::thread([this, &thread] { work(thread); });
  } catch (const std::system_error& error) {
    log::error("Cannot start a thread for replications: {}", error.what());
    threads_.pop_back();
    return;
  }
  pthread_setname_np(thread.thread.native_handle(), "replication");
  ++alive_;
}

void Replicator::wake(std::uint64_t number, Entry& entry) {
  if (entry.works) {
    entry.woken = true;
  } else if (entry.state == Run::State::waits) {
    waiting_.erase({entry.wake_at, number});
    make_ready(number, entry);
  }
}

std::optional<std::uint64_t> Replicator::next_ready() {
  const auto turn = std::ranges::find_if(turns_, [&](const auto& name) { return may_have_thread(name); });
  if (turn == turns_.end()) return std::nullopt;
  const auto group = std::move(*turn);
  turns_.erase(turn);
  const auto queue = ready_.find(group);
  const auto number = queue->second.front();
  queue->second.pop_front();
  --ready_count_;
  if (queue->second.empty()) {
    ready_.erase(queue);
  } else {
    turns_.push_back(group);
  }
  return number;
}

// Peers may be slow: a group gets at most half of the threads that the others leave.
bool Replicator::may_have_thread(const std::string& group) const {
  const auto found = working_.find(group);
  if (found == working_.end()) return true;
  const auto others = working_count_ - found->second;
  const auto most = most_threads();
  return 2 * found->second < (most > others ? most - others : 0);
}

void Replicator::work(Thread& self) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto number = next_ready()) {
      work_on(*number, lock);
      continue;
    }
    if (stopping_) break;
    ++idle_;
    const bool is_awake = local_.clock.wait_until(lock, has_work_, local_.clock.now() + kIdleTime, [this] {
      return stopping_ ||
             std::ranges::any_of(turns_, [this](const auto& name) { return may_have_thread(name); });
    });
    --idle_;
    if (!is_awake) break;
  }
  --alive_;
  self.has_ended = true;
}

void Replicator::work_on(std::uint64_t number, std::unique_lock<Mutex>& lock) {
  Entry& entry = entries_.at(number);
  entry.works = true;
  entry.woken = false;
  const std::string group = entry.run->group();
  ++working_[group];
  ++working_count_;
  lock.unlock();
  const auto turn = entry.run->work(local_.clock.now() + kTurn);
  lock.lock();
  --working_count_;
  if (--working_[group] == 0) working_.erase(group);
  has_work_.notify_one();  // another replication of this group may have a thread
  entry.works = false;
  entry.state = turn.state;
  entry.wake_at = turn.wake_at;
  if (turn.state == Run::State::ended) {
    const auto ended = std::move(entry.run);
    entries_.erase(number);
    lock.unlock();
    // Its connections are closed without the lock.
  } else if (turn.state == Run::State::ready || entry.woken || entry.run->interrupted()) {
    make_ready(number, entry);
  } else {
    waiting_.emplace(entry.wake_at, number);
    if (waiting_.begin()->second == number) loop_.notify();
  }
  if (!lock.owns_lock()) lock.lock();
}

}  // namespace divan::replicator
