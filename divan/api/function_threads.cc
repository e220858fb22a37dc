#include "divan/api/function_threads.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "divan/base/error.h"

namespace divan::api {
namespace {

constexpr std::size_t kQuickThreads = 16;
constexpr std::size_t kTrialThreads = 4;
constexpr MemoryLimits kMemory{.all = 256 << 20, .of_one = 64 << 20, .share = 4 << 20};

// A search is computation, and reads of what is mostly in the cache.
std::size_t search_threads() { return 2 * std::max<std::size_t>(1, std::thread::hardware_concurrency()); }

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
      slow_("slow function", slow_threads),
      lists_("list function", slow_threads),
      searches_of_one_(search_threads() / 2),
      searches_("search", search_threads()),
      memory_(kMemory, MutexRank::validations) {}

bool FunctionThreads::submit(std::int64_t database, FunctionUse use, Task task) {
  if (use == FunctionUse::paged_list)
    return lists_.submit(database, [task = std::move(task)] { run(task, js::Limits()); });
  if (use == FunctionUse::search) {
    const auto several = static_cast<Key>(searches_of_one_);
    return searches_.submit(several * database + static_cast<Key>(searches_so_far_++) % several,
                            std::move(task));
  }
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

FunctionThreads::Reservation FunctionThreads::reserve(std::int64_t database, std::size_t bytes) {
  Reservation reservation(memory_, database);
  reserve_more(reservation, bytes);
  return reservation;
}

void FunctionThreads::reserve_more(Reservation& reservation, std::size_t bytes) {
  const auto limit = reservation.add(bytes);
  if (limit == MemoryLimit::none) return;
  throw Error(503, "service_unavailable",
              limit == MemoryLimit::of_one ? "Too many documents wait for functions of the database."
                                           : "Too many documents wait for functions of all databases.");
}

void FunctionThreads::stop() {
  quick_.stop();
  trial_.stop();
  slow_.stop();
  lists_.stop();
  searches_.stop();
}

}  // namespace divan::api
