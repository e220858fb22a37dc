#include "divan/api/function_threads.h"

#include <utility>

#include "divan/base/error.h"

namespace divan::api {
namespace {

constexpr std::size_t kQuickThreads = 16;
constexpr std::size_t kMostBytes = 256 << 20;
constexpr std::size_t kMostBytesOfDatabase = 64 << 20;

thread_local const js::Limits* current_limits = nullptr;

void run(const std::function<void()>& task, const js::Limits& limits) {
  struct Restore {
    const js::Limits* before = std::exchange(current_limits, nullptr);
    ~Restore() { current_limits = before; }
  } restore;
  current_limits = &limits;
  task();
}

js::Limits quick_limits() {
  js::Limits limits;
  limits.urgent = limits.waited_for = true;
  limits.on_slow = [] { throw SlowFunction(); };
  return limits;
}

}  // namespace

FunctionThreads::FunctionThreads(std::size_t slow_threads)
    : quick_("function", kQuickThreads), slow_("slow function", slow_threads) {}

bool FunctionThreads::submit(std::int64_t database, FunctionUse use, std::function<void()> task) {
  const FairThreadPool::Key key = 4 * database + static_cast<FairThreadPool::Key>(use);
  return quick_.submit(key, [this, key, task = std::move(task)] {
    try {
      return run(task, quick_limits());
    } catch (const SlowFunction&) {}
    // While the server stops, calls end at once.
    if (!slow_.submit(key, [task] { run(task, js::Limits()); })) run(task, js::Limits());
  });
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
  const bool is_too_much = of_database + bytes > kMostBytesOfDatabase || all_reserved_ + bytes > kMostBytes;
  if (of_database > 0 && is_too_much)
    throw Error(503, "service_unavailable", "Too many documents wait for functions of the database.");
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
  slow_.stop();
}

}  // namespace divan::api
