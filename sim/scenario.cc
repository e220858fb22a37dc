#include "sim/scenario.h"

#include "sim/cluster.h"

namespace divan::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kHourMs = 3'600'000;

class Scenario {
 public:
  explicit Scenario(World& world) : world_(world), rng_(world.rng()), cluster_(world) {}

  void run() {
    cluster_.plan = Plan::random(rng_);
    cluster_.engine.faults = Faults::random(rng_);
    world_.spawn(nullptr, "story", [this] { story(); });
    world_.run();
  }

 private:
  void story();
  void declare_types();
  void settle();
  void trouble();
  void calm_down();
  void wait_for_the_end_of_all_jobs();
  void wait_for_a_tick_of_all_schedules();
  void wait_for_the_workers_to_leave();
  void check_pruning();

  Process& add(const std::string& name, bool right_clock);
  // Begins the lives of a process, one after the other.
  void live(Process& process, Start start);
  void repeat(const std::string& what, Duration every, std::function<void(Process&)> fn);
  Duration absence() { return between(rng_, milliseconds(1), cluster_.engine.faults.longest_absence); }

  World& world_;
  Rng& rng_;
  Cluster cluster_;
  std::unique_ptr<Base> founder_;  // acts for the world itself
  std::vector<Process*> processes_;
  Duration ahead_{};  // how far wall clocks are ahead, at most
  MonotonicTime calm_since_{};
  bool over_ = false;
};

Process& Scenario::add(const std::string& name, bool right_clock) {
  Process& process = world_.add_process(name);
  const bool right = right_clock || rng_.below(2) == 0;
  const std::int64_t widest = rng_.below(10) == 0 ? kHourMs : 5'000;
  const auto offset =
      right ? 0 : static_cast<std::int64_t>(rng_.below(2 * static_cast<std::uint64_t>(widest))) - widest;
  ahead_ = std::max<Duration>(ahead_, milliseconds(offset));
  const double drift = right ? 1.0 : 0.999 + static_cast<double>(rng_.below(2000)) / 1e6;
  process.clock =
      std::make_unique<SimClock>(world_, between(rng_, {}, std::chrono::hours(100)), offset, drift);
  process.rng = std::make_unique<SeededRng>(rng_.next());
  processes_.push_back(&process);
  return process;
}

void Scenario::live(Process& process, Start start) {
  start(cluster_, process);
  world_.spawn(nullptr, "fate of " + process.name, [this, &process, start] {
    for (;;) {
      world_.wait(nullptr, MonotonicTime::max(), [&] { return world_.tasks_of(process) == 0; });
      if (over_ || cluster_.closing) return;
      world_.trace(fmt::format("{} has {}", process.name, process.alive ? "stopped" : "crashed"));
      world_.count(process.alive ? "processes stopped" : "processes crashed");
      const MonotonicTime back = world_.now() + absence();
      world_.wait(nullptr, back, [&] { return cluster_.quiet; });
      if (over_) return;
      world_.wait(nullptr, MonotonicTime::max(), [&] { return world_.now() >= world_.paused_until(); });
      cluster_.leaving.erase(&process);
      ++process.life;
      process.alive = true;
      process.cut_off_until = process.frozen_until = {};
      start(cluster_, process);
    }
  });
}

void Scenario::declare_types() {
  founder_->store.run([&](kv::Transaction& tx) {
    for (const auto& [type, settings] : cluster_.plan.settings) founder_->queue.set_type(tx, type, settings);
  });
}

void Scenario::settle() {
  founder_ = std::make_unique<Base>(cluster_, add("founder", true));
  processes_.clear();
  const Faults faults = std::exchange(cluster_.engine.faults, {});
  for (const auto& [type, settings] : cluster_.plan.settings) cluster_.jobs.declare(type, settings);
  declare_types();
  cluster_.engine.faults = faults;
  for (std::uint64_t i = 0, servers = 1 + rng_.below(4); i < servers; ++i) {
    live(add(fmt::format("server{}", i), i == 0), start_server);
  }
  cluster_.last_server = processes_[0];
  for (std::uint64_t i = 0, remotes = rng_.below(3); i < remotes; ++i) {
    live(add(fmt::format("remote{}", i), false), start_remote);
  }
  for (std::uint64_t i = 0, clients = 1 + rng_.below(3); i < clients; ++i) {
    live(add(fmt::format("client{}", i), false), start_client);
  }
}

void Scenario::repeat(const std::string& what, Duration every, std::function<void(Process&)> fn) {
  if (every == Duration()) return;
  world_.spawn(nullptr, what, [this, what, every, fn] {
    for (;;) {
      const MonotonicTime next = world_.now() + between(rng_, {}, every * 2);
      if (world_.wait(nullptr, next, [this] { return cluster_.quiet; })) return;
      Process& process = *processes_[rng_.below(processes_.size())];
      if (!process.alive || world_.now() < world_.paused_until()) continue;
      world_.trace(what + " " + process.name);
      world_.count("fault: " + what);
      fn(process);
    }
  });
}

void Scenario::trouble() {
  const Faults& faults = cluster_.engine.faults;
  repeat("crash of", faults.crash_every, [this](Process& process) { world_.crash(process); });
  repeat("freeze of", faults.freeze_every, [this](Process& process) { world_.freeze(process, absence()); });
  repeat("pause of the machine", faults.pause_every, [this](Process&) { world_.pause_machine(absence()); });
  repeat("cut off", faults.cut_off_every,
         [this](Process& process) { process.cut_off_until = world_.now() + absence(); });
  world_.pause(between(rng_, seconds(15), seconds(100)));
}

void Scenario::calm_down() {
  world_.trace("quiet from now on");
  const Duration slowest = cluster_.engine.faults.slowest;
  cluster_.engine.faults = {};
  cluster_.quiet = true;
  for (Process* process : processes_) process->cut_off_until = {};
  world_.thaw();
  // Slow operations that are under way come to their end; one of them may pause a type. Those that a client
  // has paused go on.
  world_.pause(slowest);
  declare_types();
  if (!world_.wait(nullptr, world_.now() + seconds(100), [this] {
        return cluster_.leaving.empty() && !cluster_.incarnation_of_last_server().empty();
      })) {
    world_.fail("A process that is to stop goes on.");
  }
  calm_since_ = world_.now();
}

void Scenario::wait_for_the_end_of_all_jobs() {
  const MonotonicTime start = world_.now();
  std::map<std::string, MonotonicTime> unheld;  // by lock: since when nobody works on the attempt
  Duration longest{};
  for (const auto& [type, settings] : cluster_.plan.settings) {
    longest = std::max(longest, settings.timeout * 3 + settings.backoff_max);
  }
  // Of a job's own settings: sim/client.cc
  longest = std::max({longest, cluster_.plan.worker_timeout * 3, Duration(seconds(45))});
  for (;;) {
    const auto open = cluster_.jobs.open();
    if (open.empty()) return;
    for (const auto& job : open) {
      if (job.state != jobs::State::running || cluster_.held.contains(job.lock)) continue;
      const auto since = unheld.emplace(job.lock, world_.now()).first->second;
      // Who is silent for a timeout is found out within another one. A job's own (sim/client.cc) may have
      // been another one when its attempt gave its last sign of life.
      const Duration timeout =
          job.worker_id.empty() ? std::max(cluster_.plan.settings.at(job.type).timeout, Duration(seconds(11)))
                                : cluster_.plan.worker_timeout;
      if (world_.now() - since > timeout * 2 + seconds(6)) {
        world_.fail(
            fmt::format("Job {}/{} runs, nobody works on it, and nobody reclaims it.", job.type, job.id));
      }
    }
    // Scheduled jobs are due within 15 s. What a process adds or tries again whose clock is ahead is due when
    // the others' clocks are there, too.
    const Duration bound = seconds(20) + longest + ahead_ + seconds(1) * static_cast<int>(open.size());
    if (world_.now() - start > bound) {
      world_.fail(fmt::format("Job {}/{} is still {} when all should have ended.", open[0].type, open[0].id,
                              jobs::state_name(open[0].state)));
    }
    world_.pause(milliseconds(250));
  }
}

// A tick is two minutes away at most; one that was set by a clock that is ahead, and then was skipped by
// another, is so by that clock.
void Scenario::wait_for_a_tick_of_all_schedules() {
  if (!cluster_.jobs.stuck_since(calm_since_)) return;
  world_.count("waits for the schedules");
  const MonotonicTime bound = world_.now() + minutes(5) + ahead_ * 2;
  while (const auto stuck = cluster_.jobs.stuck_since(calm_since_)) {
    if (world_.now() > bound)
      world_.fail(fmt::format("Job {}/{} does not go on with its schedule.", stuck->first, stuck->second));
    world_.pause(milliseconds(250));
  }
}

void Scenario::wait_for_the_workers_to_leave() {
  const std::string before = cluster_.incarnation_of_last_server();
  // Half of them in good order, half of them not.
  cluster_.closing = true;
  for (std::size_t i = 1; i < processes_.size(); i += 2) world_.crash(*processes_[i]);
  const Duration bound = cluster_.plan.worker_timeout * 2 + seconds(5);
  const bool left = world_.wait(nullptr, world_.now() + bound,
                                [this] { return cluster_.workers.incarnations().size() <= 2; });
  if (!left) world_.fail("A worker is gone and its rows are still there.");
  if (before.empty() || cluster_.incarnation_of_last_server() != before)
    world_.fail("A worker lost its registration for nothing.");
}

// The clock of the last server is right, and it looks every five seconds or more often.
void Scenario::check_pruning() {
  constexpr auto kPatience = seconds(10);
  if (world_.now() - calm_since_ < kPatience) return world_.count("ends too early to check what is kept");
  const auto kept =
      cluster_.jobs.kept_too_long(cluster_.true_clock.wall_ms() - milliseconds(kPatience).count());
  if (kept)
    world_.fail(fmt::format("Job {}/{} ended, and is kept beyond its retention.", kept->first, kept->second));
}

void Scenario::story() {
  settle();
  trouble();
  calm_down();
  wait_for_the_end_of_all_jobs();
  wait_for_a_tick_of_all_schedules();
  wait_for_the_workers_to_leave();
  check_pruning();
  cluster_.observer.check_copy();
  over_ = true;
  for (Process* process : processes_) world_.crash(*process);
}

}  // namespace

Outcome run_seed(std::uint64_t seed, bool print_trace) {
  World world(seed);
  if (print_trace) world.print_trace();
  Scenario scenario(world);
  scenario.run();
  return {world.failure(),
          world.last_lines(),
          world.trace_hash(),
          world.steps(),
          std::chrono::duration<double>(world.now().time_since_epoch()).count(),
          world.counts()};
}

}  // namespace divan::sim
