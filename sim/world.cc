#include "sim/world.h"

#include <fmt/core.h>

#include <cstdio>

namespace divan::sim {
namespace {

constexpr std::size_t kKeptLines = 60;

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

struct World::Task {
  std::uint64_t number = 0;
  std::string name;
  Process* process = nullptr;
  int incarnation = 0;
  std::function<void()> body;
  std::unique_ptr<Fiber> fiber;

  bool ended = false;
  // What it waits for.
  MonotonicTime deadline{};
  std::unique_lock<Mutex>* lock = nullptr;
  const std::function<bool()>* done = nullptr;

  bool unwinding = false;
  int unwindless = 0;
};

World::World(std::uint64_t seed) : rng_(seed) {}

World::~World() = default;

Process& World::add_process(const std::string& name) {
  auto process = std::make_unique<Process>();
  process->name = name;
  processes_.push_back(std::move(process));
  return *processes_.back();
}

void World::spawn(Process* process, const std::string& name, std::function<void()> body) {
  auto task = std::make_unique<Task>();
  task->number = ++spawned_;
  task->name = process == nullptr ? name : process->name + "." + name;
  task->process = process;
  task->incarnation = process == nullptr ? 0 : process->incarnation;
  task->body = std::move(body);
  task->deadline = now_;
  Task& started = *task;
  tasks_.push_back(std::move(task));
  if (process != nullptr) ++process->tasks;
  started.fiber = std::make_unique<Fiber>([this, &started] { return this->body(started); });
}

Fiber* World::body(Task& task) {
  try {
    check_alive(task);
    task.body();
  } catch (const Crash&) {
  } catch (const std::exception& error) {
    ++task.unwindless;
    fail(fmt::format("Task {} ended with an error: {}", task.name, error.what()));
  }
  // Destructors of what the body owns may use the store.
  ++task.unwindless;
  task.body = nullptr;
  task.ended = true;
  if (task.process != nullptr) --task.process->tasks;
  std::erase_if(tasks_, [&](const auto& one) { return one->ended && one.get() != &task; });
  return &next();
}

void World::run() {
  if (tasks_.empty()) return;
  outside_.switch_to(next());
  tasks_.clear();
}

bool World::is_dead(const Task& task) const {
  if (!failure_.empty()) return true;
  return task.process != nullptr && (!task.process->alive || task.process->incarnation != task.incarnation);
}

void World::check_alive(Task& task) {
  if (!is_dead(task) || task.unwinding || task.unwindless > 0) return;
  task.unwinding = true;
  throw Crash{};
}

bool World::is_unwinding() const { return current_ != nullptr && is_dead(*current_); }

bool World::can_run(Task& task) {
  if (task.ended) return false;
  if (is_dead(task)) return true;
  if (task.process != nullptr && task.process->frozen_until > now_) return false;
  if (task.deadline <= now_) return true;
  if (task.done == nullptr) return false;
  // Another task has yielded with this mutex, so what it protects may not be read.
  if (task.lock != nullptr && !task.lock->try_lock()) return false;
  const bool done = (*task.done)();
  if (task.lock != nullptr) task.lock->unlock();
  return done;
}

World::Task* World::choose() {
  for (;;) {
    std::vector<Task*> ready;
    bool any = false;
    for (const auto& task : tasks_) {
      any = any || !task->ended;
      if (can_run(*task)) ready.push_back(task.get());
    }
    if (!ready.empty()) return ready[rng_.below(ready.size())];
    if (!any) return nullptr;
    MonotonicTime next = MonotonicTime::max();
    for (const auto& task : tasks_) {
      if (task->ended) continue;
      const bool frozen = task->process != nullptr && task->process->frozen_until > now_;
      // A frozen task may find its condition true when it continues.
      const MonotonicTime frozen_until = frozen ? task->process->frozen_until : now_;
      const bool has_more = frozen && task->done != nullptr;
      next = std::min(next, has_more ? frozen_until : std::max(task->deadline, frozen_until));
    }
    if (next == MonotonicTime::max()) {
      fail("All tasks wait for each other.");
      continue;
    }
    now_ = next;
  }
}

Fiber& World::next() {
  Task* const task = choose();
  ++steps_;
  current_ = task;
  if (task == nullptr) return outside_;
  mix(task->number);
  mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  return *task->fiber;
}

void World::yield(Task& task) {
  Fiber& other = next();
  if (&other != task.fiber.get()) task.fiber->switch_to(other);
  task.done = nullptr;
  task.lock = nullptr;
}

void World::pause(Duration duration) {
  Task& task = *current_;
  check_alive(task);
  if (is_dead(task)) return;
  task.deadline = now_ + duration;
  yield(task);
  check_alive(task);
}

bool World::wait(std::unique_lock<Mutex>* lock, MonotonicTime deadline, const std::function<bool()>& done) {
  Task& task = *current_;
  check_alive(task);
  if (is_dead(task) || done()) return done();
  if (lock != nullptr) lock->unlock();
  task.deadline = deadline;
  task.lock = lock;
  task.done = &done;
  yield(task);
  if (lock != nullptr) lock->lock();
  check_alive(task);
  return done();
}

void World::crash(Process& process) {
  process.alive = false;
  process.frozen_until = {};
}

void World::freeze(Process& process, Duration duration) {
  process.frozen_until = std::max(process.frozen_until, now_ + duration);
}

void World::pause_machine(Duration duration) {
  for (const auto& process : processes_) freeze(*process, duration);
  pauses_.push_back({now_, now_ + duration});
}

void World::thaw() {
  for (const auto& process : processes_) process->frozen_until = {};
  if (!pauses_.empty()) pauses_.back().end = std::min(pauses_.back().end, now_);
}

World::Paused World::paused_since(MonotonicTime since) const {
  Paused paused;
  for (const auto& [begin, end] : pauses_) {
    const Duration overlap = std::min(end, now_) - std::max(begin, since);
    if (overlap <= Duration()) continue;
    paused.duration += overlap;
    ++paused.times;
  }
  return paused;
}

std::uint64_t World::task() const { return current_->number; }

World::Unwindless::Unwindless(World& world) : world_(world) { ++world_.current_->unwindless; }
World::Unwindless::~Unwindless() { --world_.current_->unwindless; }

void World::fail(const std::string& what) {
  if (failure_.empty()) {
    trace("FAILED: " + what);
    failure_ = what;
  }
  if (current_ != nullptr) check_alive(*current_);
}

void World::trace(std::string_view line) {
  const auto ns = now_.time_since_epoch().count();
  std::string full = fmt::format("{:>4}.{:06} {:<14} {}", ns / 1'000'000'000, ns / 1'000 % 1'000'000,
                                 current_ == nullptr ? "" : current_->name, line);
  mix(hash_of(full));
  if (print_) fmt::print("{}\n", full);
  lines_.push_back(std::move(full));
  if (lines_.size() > kKeptLines) lines_.pop_front();
}

void World::mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 1099511628211u + 0x9e3779b97f4a7c15u; }

}  // namespace divan::sim
