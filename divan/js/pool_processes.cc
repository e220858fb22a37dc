// The processes of the pool: who has which, their beginning and their end.
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/js/pool.h"

namespace divan::js {
namespace {

constexpr int kStartAttempts = 3;
// Processes that are not nice to others, at least: for urgent calls.
constexpr std::size_t kLeastNotNice = 1;

Error stopped() { return {503, "service_unavailable", "The server is stopping."}; }
Error ended() { return {503, "service_unavailable", "The JavaScript functions were stopped."}; }

}  // namespace

void Pool::refuse_if_ended(const std::stop_token& stop) const {
  std::lock_guard lock(mutex_);
  if (stopping_) throw stopped();
  if (stop.stop_requested()) throw ended();
}

std::unique_ptr<Process> Pool::acquire(std::string_view program_key, const Owner& owner, Choice choice,
                                       Purpose purpose, const std::stop_token& stop, Turns::Call& call) {
  std::vector<std::unique_ptr<Process>> unfit;  // buried when the lock is released
  const std::stop_callback wake(stop, [this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  unfit = take_ended();
  call = turns_.join(owner.number, purpose);
  const auto next = [&] { return stopping_ || stop.stop_requested() || turns_.is_next(call); };
  const bool got = next() || clock_.wait_until(lock, changed_, clock_.now() + options_.wait, next);
  turns_.leave(call);
  if (turns_.waiting() > 0) changed_.notify_all();
  if (stopping_) throw stopped();
  if (stop.stop_requested()) throw ended();
  if (!got) throw Error(503, "service_unavailable", "All JavaScript processes are busy.");
  turns_.begin(call);
  RunningCall& running = running_[call.ticket];
  running = {owner, purpose, -1, clock_.now()};
  std::unique_ptr<Process> process = take_process(program_key, choice, purpose, unfit);
  running.nice = process ? process->is_nice() : purpose == Purpose::background;
  if (!process) {
    const auto memory = memory_;
    lock.unlock();
    try {
      process = start(memory, purpose, stop);
    } catch (...) {
      lock.lock();
      turns_.end(call);
      running_.erase(call.ticket);
      --alive_;
      changed_.notify_all();
      throw;
    }
    lock.lock();
  }
  running.pid = process->pid();
  return process;
}

// An idle process, or null if one is to be started for the purpose, which is counted then. Background calls
// get processes that are nice to others; of others there are as many as are reserved. Needs mutex_.
std::unique_ptr<Process> Pool::take_process(std::string_view program_key, Choice choice, Purpose& purpose,
                                            std::vector<std::unique_ptr<Process>>& ended) {
  const bool is_full = alive_ >= turns_.kept();
  if (choice == Choice::any) {
    if (auto process = take_idle(program_key, purpose)) return process;
    const bool enough =
        purpose == Purpose::background ||
        count_not_nice() > std::max(turns_.reserved(std::min(purpose, Purpose::urgent)), kLeastNotNice);
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

// Those that have a call, the one that is being served included, and the idle ones.
std::size_t Pool::count_not_nice() const {
  const auto busy =
      std::count_if(running_.begin(), running_.end(), [](const auto& one) { return !one.second.nice; });
  const auto idle =
      std::count_if(idle_.begin(), idle_.end(), [](const auto& one) { return !one->is_nice(); });
  return static_cast<std::size_t>(busy + idle);
}

// Null if there is none for this purpose.
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
  alive_ -= ended.size();
  stats_.died += ended.size();
  return ended;
}

// Called without the lock; the process is counted already.
std::unique_ptr<Process> Pool::start(std::size_t memory, Purpose purpose, const std::stop_token& stop) {
  std::unique_ptr<Process> process;
  for (int attempt = 1; !process; ++attempt) {
    try {
      process = std::make_unique<Process>(options_.binary, memory, stop_fd_, stop);
      if (purpose == Purpose::background) process->make_nice();
    } catch (const Error&) {
      refuse_if_ended(stop);
      // The kernel may have chosen it when memory ran short.
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

void Pool::give_back(std::unique_ptr<Process> process, const Turns::Call& call, bool usable, Duration held) {
  const bool grown = process->resident_bytes() > options_.recycle;
  std::unique_lock lock(mutex_);
  stats_.busy_time += held;
  // One too many, or with another limit than is set now.
  const bool unfit = grown || alive_ > turns_.kept_after(call) || process->memory_limit() != memory_;
  if (usable && !unfit) {
    idle_.push_back(std::move(process));
  } else {
    lock.unlock();
    process.reset();
    lock.lock();
    --alive_;
    ++(usable ? stats_.recycled : stats_.died);
  }
  turns_.end(call);
  running_.erase(call.ticket);
  changed_.notify_all();
}

PoolStats Pool::stats() const {
  std::lock_guard lock(mutex_);
  auto stats = stats_;
  stats.alive = alive_;
  stats.busy = alive_ - idle_.size();
  stats.waiting = turns_.waiting();
  return stats;
}

std::size_t Pool::processes() const {
  std::lock_guard lock(mutex_);
  return turns_.processes();
}

std::vector<RunningCall> Pool::running() const {
  std::lock_guard lock(mutex_);
  std::vector<RunningCall> calls;
  calls.reserve(running_.size());
  for (const auto& [ticket, call] : running_) calls.push_back(call);
  return calls;
}

}  // namespace divan::js
