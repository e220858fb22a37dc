// The processes of the pool: starting, acquiring, releasing and ending them.
#include <algorithm>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/js/pool.h"

namespace divan::js {
namespace {

constexpr int kStartAttempts = 3;
// The least number of processes with normal priority, for urgent calls.
constexpr std::size_t kMinNormalPriority = 1;

Error stopped() { return {503, "service_unavailable", "The server is stopping."}; }
Error ended() { return {503, "service_unavailable", "The JavaScript functions were stopped."}; }

}  // namespace

void Pool::refuse_if_ended(const std::stop_token& stop) const {
  std::lock_guard lock(mutex_);
  if (stopping_) throw stopped();
  if (stop.stop_requested()) throw ended();
}

std::unique_ptr<Process> Pool::acquire(std::string_view program_key, const Owner& owner, Choice choice,
                                       Purpose purpose, const std::stop_token& stop,
                                       ProcessScheduler::Call& call) {
  std::vector<std::unique_ptr<Process>> unfit;  // destroyed after the lock is released
  const std::stop_callback wake(stop, [this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  unfit = take_ended();
  call = scheduler_.enqueue(owner.number, purpose);
  const auto next = [&] { return stopping_ || stop.stop_requested() || scheduler_.is_next(call); };
  const bool got = next() || clock_.wait_until(lock, changed_, clock_.now() + options_.wait, next);
  scheduler_.dequeue(call);
  if (scheduler_.waiting() > 0) changed_.notify_all();
  if (stopping_) throw stopped();
  if (stop.stop_requested()) throw ended();
  if (!got) throw Error(503, "service_unavailable", "All JavaScript processes are busy.");
  scheduler_.begin(call);
  DIVAN_CHECK(!running_.contains(call.id), "two calls have the id {}", call.id);
  RunningCall& running = running_[call.id];
  running = {owner, purpose, -1, clock_.now()};
  if (purpose == Purpose::list) purpose = Purpose::background;  // its process has the same priority
  std::unique_ptr<Process> process = take_process(program_key, choice, purpose, unfit);
  running.nice = process ? process->is_nice() : purpose == Purpose::background;
  if (!process) {
    const auto memory = memory_;
    lock.unlock();
    try {
      process = start(memory, purpose, stop);
    } catch (...) {
      lock.lock();
      scheduler_.end(call);
      running_.erase(call.id);
      --alive_;
      changed_.notify_all();
      throw;
    }
    lock.lock();
  }
  running.pid = process->pid();
  DIVAN_CHECK(alive_ >= idle_.size() && alive_ <= idle_.size() + running_.size(),
              "{} processes, of which {} are idle and {} in calls", alive_, idle_.size(), running_.size());
  return process;
}

// Returns an idle process, or null if the caller must start one for `purpose` (it is counted already).
// Background calls get processes of low priority; there are as many of normal priority as are reserved.
// mutex_ must be held.
std::unique_ptr<Process> Pool::take_process(std::string_view program_key, Choice choice, Purpose& purpose,
                                            std::vector<std::unique_ptr<Process>>& ended) {
  const bool is_full = alive_ >= scheduler_.kept();
  if (choice == Choice::any) {
    if (auto process = take_idle(program_key, purpose)) return process;
    const bool enough =
        purpose == Purpose::background ||
        count_normal_priority() >
            std::max(scheduler_.reserved(std::min(purpose, Purpose::urgent)), kMinNormalPriority);
    if (is_full || (enough && purpose != Purpose::background)) {
      const Purpose other = purpose == Purpose::background ? Purpose::urgent : Purpose::background;
      if (auto process = take_idle(program_key, other)) return process;
    }
    if (enough) purpose = Purpose::background;
  }
  if (is_full && !idle_.empty()) {
    ended.push_back(std::move(idle_.front()));
    idle_.erase(idle_.begin());
    --alive_;
    ++stats_.recycled;
  }
  ++alive_;
  return nullptr;
}

// Busy processes (that of the current call included) and idle ones.
std::size_t Pool::count_normal_priority() const {
  const auto busy =
      std::count_if(running_.begin(), running_.end(), [](const auto& one) { return !one.second.nice; });
  const auto idle =
      std::count_if(idle_.begin(), idle_.end(), [](const auto& one) { return !one->is_nice(); });
  return static_cast<std::size_t>(busy + idle);
}

// Returns null if no idle process fits the purpose.
std::unique_ptr<Process> Pool::take_idle(std::string_view program_key, Purpose purpose) {
  const bool nice = purpose == Purpose::background;
  auto chosen = idle_.end();
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    if ((*it)->is_nice() != nice) continue;
    chosen = it;
    if ((*it)->find(program_key)) break;
  }
  if (chosen == idle_.end()) return nullptr;
  auto process = std::move(*chosen);
  idle_.erase(chosen);
  return process;
}

std::vector<std::unique_ptr<Process>> Pool::take_ended() {
  const auto first_ended = std::stable_partition(idle_.begin(), idle_.end(),
                                                 [](const auto& process) { return !process->ended(); });
  std::vector<std::unique_ptr<Process>> ended(std::make_move_iterator(first_ended),
                                              std::make_move_iterator(idle_.end()));
  idle_.erase(first_ended, idle_.end());
  DIVAN_CHECK(alive_ >= ended.size(), "{} of {} processes have ended", ended.size(), alive_);
  alive_ -= ended.size();
  stats_.died += ended.size();
  return ended;
}

// mutex_ must be held.
std::vector<std::unique_ptr<Process>> Pool::take_all_idle() {
  auto taken = std::exchange(idle_, {});
  alive_ -= taken.size();
  stats_.recycled += taken.size();
  DIVAN_CHECK(alive_ <= running_.size(), "{} processes and {} calls", alive_, running_.size());
  return taken;
}

// Called without the lock; alive_ includes the process already.
std::unique_ptr<Process> Pool::start(std::size_t memory, Purpose purpose, const std::stop_token& stop) {
  std::unique_ptr<Process> process;
  for (int attempt = 1; !process; ++attempt) {
    try {
      process = std::make_unique<Process>(options_.binary, memory, stop_fd_, stop);
      if (purpose == Purpose::background) process->make_nice();
    } catch (const Error&) {
      refuse_if_ended(stop);
      // The kernel may have killed it under memory pressure.
      if (attempt == kStartAttempts) throw;
    }
  }
  std::lock_guard lock(mutex_);
  ++stats_.started;
  if (!process->locked() && !std::exchange(warned_, true)) {
    log::warning("{} runs without its system call filter: it was built with a sanitizer.", options_.binary);
  }
  return process;
}

void Pool::release(std::unique_ptr<Process> process, const ProcessScheduler::Call& call, bool usable,
                   Duration held) {
  const bool grown = process->resident_bytes() > options_.recycle;
  std::unique_lock lock(mutex_);
  stats_.busy_time += held;
  // Surplus, with an outdated memory limit, or to be replaced.
  const bool unfit = grown || alive_ > scheduler_.kept_after(call) || process->memory_limit() != memory_ ||
                     running_[call.id].since <= replaced_at_;
  if (usable && !unfit) {
    idle_.push_back(std::move(process));
  } else {
    lock.unlock();
    process.reset();
    lock.lock();
    DIVAN_CHECK(alive_ > 0, "the number of processes would be negative");
    --alive_;
    ++(usable ? stats_.recycled : stats_.died);
  }
  scheduler_.end(call);
  running_.erase(call.id);
  DIVAN_CHECK(alive_ >= idle_.size() && alive_ <= idle_.size() + running_.size(),
              "{} processes, of which {} are idle and {} in calls", alive_, idle_.size(), running_.size());
  changed_.notify_all();
}

PoolStats Pool::stats() const {
  std::lock_guard lock(mutex_);
  auto stats = stats_;
  stats.alive = alive_;
  stats.busy = alive_ - idle_.size();
  stats.waiting = scheduler_.waiting();
  return stats;
}

std::size_t Pool::processes() const {
  std::lock_guard lock(mutex_);
  return scheduler_.processes();
}

std::vector<RunningCall> Pool::running() const {
  std::lock_guard lock(mutex_);
  std::vector<RunningCall> calls;
  calls.reserve(running_.size());
  for (const auto& [id, call] : running_) calls.push_back(call);
  return calls;
}

}  // namespace divan::js
