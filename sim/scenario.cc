#include "sim/scenario.h"

#include "sim/cluster.h"

namespace divan::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kBursts = 5;
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
  void declare_builds();
  void embed(Process& process);
  void restart_store();
  void settle();
  void inject_faults();
  void calm_down();
  void wait_for_the_end_of_all_jobs();
  void wait_for_a_tick_of_all_schedules();
  void wait_for_the_workers_to_leave();
  void wait_for_the_databases();
  void check_databases();
  void check_pruning();

  Process& add(const std::string& name, bool right_clock);
  // Starts the incarnations of a process, one after the other.
  void run_process(Process& process, Start start);
  void repeat(const std::string& what, Duration every, std::function<void(Process&)> fn);
  Duration absence() { return between(rng_, milliseconds(1), cluster_.engine.faults.longest_absence); }

  World& world_;
  Rng& rng_;
  Cluster cluster_;
  std::unique_ptr<Base> founder_;  // acts for the world itself
  std::vector<Process*> processes_;
  Duration ahead_{};   // how far wall clocks are ahead, at most
  Duration behind_{};  // and behind
  MonotonicTime calm_since_{};
  bool over_ = false;
};

Process& Scenario::add(const std::string& name, bool right_clock) {
  Process& process = world_.add_process(name);
  const bool right = right_clock || rng_.below(2) == 0;
  const std::int64_t widest = rng_.below(20) == 0 ? kHourMs : 5'000;
  const auto offset =
      right ? 0 : static_cast<std::int64_t>(rng_.below(2 * static_cast<std::uint64_t>(widest))) - widest;
  ahead_ = std::max<Duration>(ahead_, milliseconds(offset));
  behind_ = std::max<Duration>(behind_, milliseconds(-offset));
  const double drift = right ? 1.0 : 0.999 + static_cast<double>(rng_.below(2000)) / 1e6;
  process.clock =
      std::make_unique<SimClock>(world_, between(rng_, {}, std::chrono::hours(100)), offset, drift);
  process.rng = std::make_unique<SeededRng>(rng_.next());
  processes_.push_back(&process);
  return process;
}

void Scenario::run_process(Process& process, Start start) {
  start(cluster_, process);
  world_.spawn(nullptr, "supervisor of " + process.name, [this, &process, start] {
    for (;;) {
      world_.wait(nullptr, MonotonicTime::max(), [&] { return process.tasks == 0; });
      if (over_ || cluster_.closing) return;
      world_.trace(fmt::format("{} has {}", process.name, process.alive ? "stopped" : "crashed"));
      world_.count(process.alive ? "processes stopped" : "processes crashed");
      if (cluster_.engine.embedded) restart_store();
      const MonotonicTime back = world_.now() + absence();
      world_.wait(nullptr, back, [&] { return cluster_.quiet; });
      if (over_) return;
      world_.wait(nullptr, MonotonicTime::max(), [&] { return world_.now() >= world_.paused_until(); });
      cluster_.leaving.erase(&process);
      ++process.incarnation;
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

// As index::declare_builds() does.
void Scenario::declare_builds() {
  jobs::TypeSettings settings{.timeout = cluster_.plan.build_timeout, .max_attempts = 1};
  settings.max_lost.reset();
  settings.retention = std::chrono::hours(1);
  founder_->store.run([&](kv::Transaction& tx) { founder_->queue.set_type(tx, "views", settings); });
}

// The store loses no answers, and nobody is cut off from it; but the power fails.
void Scenario::embed(Process& process) {
  Faults& faults = cluster_.engine.faults;
  faults.unknown_done = faults.unknown_undone = faults.unknown_late = faults.watch_lost = 0;
  faults.cut_off_every = {};
  cluster_.engine.embed(process, cluster_.engine_rng);
}

// The process has crashed, alone or with its machine.
void Scenario::restart_store() {
  Engine& engine = cluster_.engine;
  engine.is_open = false;
  const int cuts = engine.embedded->restart(cluster_.quiet ? 0 : engine.faults.power_cut * 50);
  engine.is_open = true;
  if (cuts > 0) world_.trace(fmt::format("the power is back; it failed {} times", cuts));
  world_.count(cuts > 0 ? "the store opened after a power cut" : "the store opened after a crash");
  if (cuts > 1) world_.count("the power failed while the store was opened", cuts - 1);
  cluster_.observer.check_restarted();
}

void Scenario::settle() {
  founder_ = std::make_unique<Base>(cluster_, add("founder", true));
  processes_.clear();
  Process& machine = add("server0", true);
  cluster_.last_server = &machine;
  if (cluster_.plan.embedded) embed(machine);
  const Faults faults = std::exchange(cluster_.engine.faults, {});
  for (const auto& [type, settings] : cluster_.plan.settings) cluster_.jobs.declare(type, settings);
  declare_types();
  declare_builds();
  cluster_.engine.faults = faults;
  const Plan& plan = cluster_.plan;
  if (plan.embedded) {
    run_process(machine, [](Cluster& cluster, Process& process) {
      start_server(cluster, process);
      if (cluster.plan.jobs) start_client(cluster, process);
      if (cluster.plan.nodes > 0) start_node(cluster, process);
    });
    return;
  }
  run_process(machine, start_server);
  for (std::uint64_t i = 1, servers = plan.jobs ? 1 + rng_.below(4) : 1; i < servers; ++i)
    run_process(add(fmt::format("server{}", i), false), start_server);
  for (std::uint64_t i = 0, remotes = plan.jobs ? rng_.below(3) : 0; i < remotes; ++i)
    run_process(add(fmt::format("remote{}", i), false), start_remote);
  for (std::uint64_t i = 0, clients = plan.jobs ? 1 + rng_.below(3) : 0; i < clients; ++i)
    run_process(add(fmt::format("client{}", i), false), start_client);
  for (std::uint64_t i = 0; i < plan.nodes; ++i)
    run_process(add(fmt::format("node{}", i), false), start_node);
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

void Scenario::inject_faults() {
  const Faults& faults = cluster_.engine.faults;
  repeat("crash of", faults.crash_every, [this](Process& process) { world_.crash(process); });
  repeat("freeze of", faults.freeze_every, [this](Process& process) { world_.freeze(process, absence()); });
  repeat("pause of the machine", faults.pause_every, [this](Process&) { world_.pause_machine(absence()); });
  repeat("cut off", faults.cut_off_every,
         [this](Process& process) { process.cut_off_until = world_.now() + absence(); });
  if (EmbeddedStore* const embedded = cluster_.engine.embedded.get(); embedded != nullptr) {
    repeat("power cut of", faults.power_cut_every, [this, embedded](Process& process) {
      embedded->cut_power();
      world_.crash(process);
    });
  }
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
  if (cluster_.engine.embedded) {
    // A restart may be under way.
    world_.wait(nullptr, MonotonicTime::max(), [this] { return processes_[0]->alive; });
    cluster_.engine.embedded->keep_power();
  }
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
      // been another one at its attempt's last heartbeat.
      const Duration timeout =
          job.worker_id.empty() ? std::max(cluster_.plan.settings.at(job.type).timeout, Duration(seconds(11)))
                                : cluster_.plan.worker_timeout;
      if (world_.now() - since > timeout * 2 + seconds(6)) {
        world_.fail(
            fmt::format("Job {}/{} runs, nothing works on it, and nothing reclaims it.", job.type, job.id));
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
  // The last server is one in two roles, and on an embedded store the builders' one, too.
  const std::size_t expected = cluster_.plan.embedded && cluster_.plan.nodes > 0 ? 3 : 2;
  const bool left = world_.wait(nullptr, world_.now() + bound,
                                [&] { return cluster_.workers.incarnations().size() <= expected; });
  if (!left) world_.fail("A worker is gone and its rows are still there.");
  if (before.empty() || cluster_.incarnation_of_last_server() != before)
    world_.fail("A worker lost its registration for nothing.");
}

// Of all nodes, readers have seen all changes and all updates, and indexes are up to date.
void Scenario::wait_for_the_databases() {
  const auto unfinished = [this]() -> std::optional<std::string> {
    for (const Process* process : processes_) {
      const auto feed = cluster_.feed_readers.find(process->name);
      const bool is_node = process->name.starts_with("node") || cluster_.plan.embedded;
      if (!is_node) continue;
      if (feed == cluster_.feed_readers.end()) return process->name + " has not read the updates feed";
      if (const auto missing = cluster_.databases.missing_of(feed->second))
        return fmt::format("{} has not read in the updates feed: {}", process->name, *missing);
      for (const auto& [number, model] : cluster_.databases.databases()) {
        const auto reader = cluster_.readers.find({process->name, model.name});
        if (reader == cluster_.readers.end() || reader->second.database != number ||
            reader->second.since != model.last)
          return fmt::format("{} has not read all changes of {}", process->name, model.name);
      }
    }
    if (const auto index = cluster_.indexes.behind()) return *index + " is not up to date";
    return std::nullopt;
  };
  // A build that a process reclaims whose clock is ahead is due for a builder whose clock is behind when that
  // clock is there, too.
  const MonotonicTime bound = world_.now() + minutes(5) + (ahead_ + behind_) * 2;
  while (const auto what = unfinished()) {
    if (world_.now() > bound) world_.fail(*what + " when all should have.");
    world_.pause(seconds(1));
  }
}

// A write that nothing follows shows what was lost between it and what was done at that moment.
void Scenario::check_databases() {
  if (cluster_.plan.nodes == 0) return;
  wait_for_the_databases();
  Faults& faults = cluster_.engine.faults;
  for (int burst = 0; burst < kBursts; ++burst) {
    // The longer operations take, the more of them overlap.
    faults.slow = rng_.below(2) * 200'000;
    faults.slowest = milliseconds(400);
    ++cluster_.bursts;
    world_.pause(seconds(2));
    faults.slow = 0;
    wait_for_the_databases();
  }
}

// The clock of the last server is right, and it polls every five seconds or more often.
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
  inject_faults();
  calm_down();
  wait_for_the_end_of_all_jobs();
  wait_for_a_tick_of_all_schedules();
  check_databases();
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
