#include "divan/api/function_threads.h"

#include <utility>

#include "divan/base/error.h"

namespace divan::api {
namespace {

constexpr std::size_t kQuickThreads = 16;
constexpr std::size_t kTrialThreads = 4;
constexpr std::size_t kMostBytes = 256 << 20;
constexpr std::size_t kMostBytesOfDatabase = 64 << 20;
// That a database has however much others hold.
constexpr std::size_t kShare = 4 << 20;

thread_local const js::Limits* current_limits = nullptr;

void run(const std::function<void()>& task, const js::Limits& limits) {
  struct Restore {
    const js::Limits* before = std::exchange(current_limits, nullptr);
    ~Restore() { current_limits = before; }
  } restore;
  current_limits = &limits;
  task();
}

js::Limits urgent_limits(bool known_quick) {
  js::Limits limits;
  limits.urgent = true;
  limits.known_quick = limits.waited_for = known_quick;
  limits.on_slow = [] { throw SlowFunction(); };
  return limits;
}

}  // namespace

FunctionThreads::FunctionThreads(std::size_t slow_threads)
    : quick_("function", kQuickThreads),
      trial_("function trial", kTrialThreads),
      slow_("slow function", slow_threads) {}

bool FunctionThreads::submit(std::int64_t database, FunctionUse use, Task task) {
  const Key key = 4 * database + static_cast<Key>(use);
  return quick_.submit(key, [this, key, task = std::move(task)] {
    try {
      run(task, urgent_limits(true));
    } catch (const SlowFunction&) {
      // While the server stops, calls end at once.
      if (!trial_.submit(key, [this, key, task] { try_out(key, task); })) run(task, js::Limits());
    }
  });
}

void FunctionThreads::try_out(Key key, const Task& task) {
  try {
    run(task, urgent_limits(false));
  } catch (const SlowFunction&) {
    if (!slow_.submit(key, [task] { run(task, js::Limits()); })) run(task, js::Limits());
  }
}

const js::Limits& FunctionThreads::limits() {
  static const js::Limits none;
  return current_limits == nullptr ? none : *current_limits;
}

FunctionThreads::Reservation::~Reservation() {
  if (threads_ != nullptr) threads_->release(database_, bytes_);
}

FunctionThreads::Reservation FunctionThreads::reserve(std::int64_t database, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  auto& of_database = reserved_[database];
  const std::size_t wanted = of_database + bytes;
  const bool is_too_much =
      wanted > kMostBytesOfDatabase || (wanted > kShare && all_reserved_ + bytes > kMostBytes);
  if (of_database > 0 && is_too_much) {
    throw Error(503, "service_unavailable",
                wanted > kMostBytesOfDatabase ? "Too many documents wait for functions of the database."
                                              : "Too many documents wait for functions of all databases.");
  }
  of_database += bytes;
  all_reserved_ += bytes;
  return {*this, database, bytes};
}

void FunctionThreads::release(std::int64_t database, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = reserved_.find(database);
  found->second -= bytes;
  if (found->second == 0) reserved_.erase(found);
  all_reserved_ -= bytes;
}

void FunctionThreads::stop() {
  quick_.stop();
  trial_.stop();
  slow_.stop();
}

}  // namespace divan::api
