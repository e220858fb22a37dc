#include "sim/scenario.h"

#include <fmt/core.h>

#include <utility>

#include "sim/cluster.h"
#include "sim/replications.h"

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
    world_.spawn(nullptr, "scenario", [this] { main(); });
    world_.run();
  }

 private:
  void main();
  void declare_types();
  void declare_builds();
  void declare_replications();
  void embed(Process& process);
  void restart_store();
  void start_processes();
  void inject_faults();
  void stop_faults();
  void wait_for_the_end_of_all_jobs();
  void wait_for_a_tick_of_all_schedules();
  void wait_for_the_workers_to_leave();
  void wait_for_the_databases();
  void check_databases();
  void check_pruning();

  Process& add(const std::string& name, bool right_clock);
  // Starts the process, and starts it again after it has stopped or crashed.
  void run_process(Process& process, const Start& start);
  void repeat(const std::string& what, Duration every, const std::function<void(Process&)>& fn);
  Duration outage() { return between(rng_, milliseconds(1), cluster_.engine.faults.longest_outage); }

  World& world_;
  Rng& rng_;
  Cluster cluster_;
  std::unique_ptr<Base> admin_;  // changes settings for the scenario
  std::vector<Process*> processes_;
  Duration ahead_{};   // how far wall clocks are ahead, at most
  Duration behind_{};  // and behind
  MonotonicTime quiet_since_{};
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

void Scenario::run_process(Process& process, const Start& start) {
  start(cluster_, process);
  world_.spawn(nullptr, "supervisor of " + process.name, [this, &process, start] {
    for (;;) {
      world_.wait(nullptr, MonotonicTime::max(), [&] { return process.tasks == 0; });
      if (over_ || cluster_.closing) return;
      world_.trace(fmt::format("{} has {}", process.name, process.alive ? "stopped" : "crashed"));
      world_.count(process.alive ? "processes stopped" : "processes crashed");
      if (cluster_.engine.embedded) restart_store();
      const MonotonicTime back = world_.now() + outage();
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
  admin_->store.run([&](kv::Transaction& tx) {
    for (const auto& [type, settings] : cluster_.plan.settings) admin_->queue.set_type(tx, type, settings);
  });
}

// As index::declare_builds() does.
void Scenario::declare_builds() {
  jobs::TypeSettings settings{.timeout = cluster_.plan.build_timeout, .max_attempts = 1};
  settings.max_lost.reset();
  settings.retention = std::chrono::hours(1);
  admin_->store.run([&](kv::Transaction& tx) {
    for (const auto* type : {"views", "triggers"}) admin_->queue.set_type(tx, type, settings);
    admin_->queue.set_type(tx, kTriggeredType, {});
  });
}

// As replicator::declare_replications() does, with shorter pauses.
void Scenario::declare_replications() {
  jobs::TypeSettings settings{.max_attempts = 1'000'000};
  settings.max_lost.reset();
  settings.backoff_min = milliseconds(500);
  settings.backoff_max = seconds(5);
  settings.retention = std::chrono::hours(1);
  admin_->store.run([&](kv::Transaction& tx) {
    admin_->queue.set_type(tx, replicator::kJobType, settings);
    add_replications(admin_->queue, tx, cluster_.plan.checkpoint_interval);
  });
}

// An embedded store loses no responses and its process is not cut off from it; but its power fails.
void Scenario::embed(Process& process) {
  Faults& faults = cluster_.engine.faults;
  faults.unknown_done = faults.unknown_undone = faults.unknown_late = faults.watch_lost = 0;
  faults.cut_off_every = {};
  cluster_.engine.embed(process, cluster_.engine_rng);
}

// For a process that has stopped or crashed, alone or with its machine.
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

void Scenario::start_processes() {
  admin_ = std::make_unique<Base>(cluster_, add("admin", true));
  processes_.clear();
  Process& machine = add("server0", true);
  cluster_.last_server = &machine;
  if (cluster_.plan.embedded) embed(machine);
  const Faults faults = std::exchange(cluster_.engine.faults, {});
  for (const auto& [type, settings] : cluster_.plan.settings) cluster_.jobs.declare(type, settings);
  declare_types();
  declare_builds();
  if (cluster_.plan.replications) declare_replications();
  cluster_.engine.faults = cluster_.other.faults = faults;
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

void Scenario::repeat(const std::string& what, Duration every, const std::function<void(Process&)>& fn) {
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
  repeat("freeze of", faults.freeze_every, [this](Process& process) { world_.freeze(process, outage()); });
  repeat("pause of the machine", faults.pause_every, [this](Process&) { world_.pause_machine(outage()); });
  repeat("cut off", faults.cut_off_every,
         [this](Process& process) { process.cut_off_until = world_.now() + outage(); });
  if (EmbeddedStore* const embedded = cluster_.engine.embedded.get(); embedded != nullptr) {
    repeat("power cut of", faults.power_cut_every, [this, embedded](Process& process) {
      embedded->cut_power();
      world_.crash(process);
    });
  }
  world_.pause(between(rng_, seconds(15), seconds(100)));
}

void Scenario::stop_faults() {
  world_.trace("quiet from now on");
  const Duration slowest = cluster_.engine.faults.slowest;
  cluster_.engine.faults = cluster_.other.faults = {};
  cluster_.quiet = true;
  for (Process* process : processes_) process->cut_off_until = {};
  world_.thaw();
  // Slow operations end, one of which may pause a type. Then all types are resumed.
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
    world_.fail("A process that is to stop does not.");
  }
  quiet_since_ = world_.now();
}

void Scenario::wait_for_the_end_of_all_jobs() {
  const MonotonicTime start = world_.now();
  std::map<std::string, MonotonicTime> unheld;  // by lock: since when the attempt is not worked on
  Duration longest{};
  for (const auto& [type, settings] : cluster_.plan.settings) {
    longest = std::max(longest, settings.timeout * 3 + settings.backoff_max);
  }
  // The maximum of jobs' own settings: client.cc
  longest = std::max({longest, cluster_.plan.worker_timeout * 3, Duration(seconds(45))});
  for (;;) {
    const auto open = cluster_.jobs.open();
    if (open.empty()) return;
    for (const auto& job : open) {
      if (job.state != jobs::State::running || cluster_.held.contains(job.lock)) continue;
      const auto since = unheld.emplace(job.lock, world_.now()).first->second;
      // Silence for a timeout is noticed within another one. The job's own timeout (client.cc) may have been
      // different at the last heartbeat of its attempt.
      const Duration timeout =
          job.worker_id.empty() ? std::max(cluster_.plan.settings.at(job.type).timeout, Duration(seconds(11)))
                                : cluster_.plan.worker_timeout;
      if (world_.now() - since > timeout * 2 + seconds(6)) {
        world_.fail(fmt::format("Job {}/{} runs without a consumer and is not reclaimed.", job.type, job.id));
      }
    }
    // Scheduled jobs are due within 15 s; those of a process whose clock is ahead, when the other clocks show
    // that time.
    const Duration bound = seconds(20) + longest + ahead_ + seconds(1) * static_cast<int>(open.size());
    if (world_.now() - start > bound) {
      world_.fail(fmt::format("Job {}/{} is still {} in the quiet time.", open[0].type, open[0].id,
                              jobs::state_name(open[0].state)));
    }
    world_.pause(milliseconds(250));
  }
}

// A tick is two minutes away at most, by the clock of the process that set it.
void Scenario::wait_for_a_tick_of_all_schedules() {
  if (!cluster_.jobs.stuck_since(quiet_since_)) return;
  world_.count("waits for the schedules");
  const MonotonicTime bound = world_.now() + minutes(5) + ahead_ * 2;
  while (const auto stuck = cluster_.jobs.stuck_since(quiet_since_)) {
    if (world_.now() > bound)
      world_.fail(
          fmt::format("Job {}/{} does not run by its schedule any more.", stuck->first, stuck->second));
    world_.pause(milliseconds(250));
  }
}

void Scenario::wait_for_the_workers_to_leave() {
  const std::string before = cluster_.incarnation_of_last_server();
  // Half of them stop regularly, half crash.
  cluster_.closing = true;
  for (std::size_t i = 1; i < processes_.size(); i += 2) world_.crash(*processes_[i]);
  const Duration bound = cluster_.plan.worker_timeout * 2 + seconds(5);
  // Those of the last server: two, and on an embedded store that of its builders.
  const std::size_t expected = cluster_.plan.embedded && cluster_.plan.nodes > 0 ? 3 : 2;
  const bool left = world_.wait(nullptr, world_.now() + bound,
                                [&] { return cluster_.workers.incarnations().size() <= expected; });
  if (!left) world_.fail("A worker is gone and its rows are still there.");
  if (before.empty() || cluster_.incarnation_of_last_server() != before)
    world_.fail("The last server has lost its registration without a fault.");
}

// Waits until the readers of each node have read all changes and all updates, and all indexes are up to date.
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
    if (const auto change = cluster_.triggers.missing()) return change;
    if (cluster_.plan.replications) return missing_in_targets(cluster_);
    return std::nullopt;
  };
  // A job that was reclaimed by a process whose clock is ahead is accepted by one whose clock is behind when
  // that clock shows its due time.
  const MonotonicTime bound = world_.now() + minutes(5) + (ahead_ + behind_) * 2;
  while (const auto what = unfinished()) {
    if (world_.now() > bound) world_.fail(*what + " in the quiet time.");
    world_.pause(seconds(1));
  }
}

// What a concurrent operation has lost of a write is noticed only if no other write follows.
void Scenario::check_databases() {
  if (cluster_.plan.nodes == 0) return;
  wait_for_the_databases();
  Faults& faults = cluster_.engine.faults;
  for (int burst = 0; burst < kBursts; ++burst) {
    // Slow operations overlap more.
    const auto slow = rng_.below(3);
    faults.slow = slow == 1 ? 200'000 : 0;
    faults.slow_commit = slow == 2 ? 300'000 : 0;
    faults.slowest = slow == 1 ? milliseconds(400) : seconds(1);
    ++cluster_.bursts;
    world_.pause(seconds(3));
    faults.slow = faults.slow_commit = 0;
    wait_for_the_databases();
  }
  // The slow store may have cost the last server its registration, or may do so until the last slow operation
  // has ended and heartbeats are regular again.
  world_.pause(faults.slowest + cluster_.plan.worker_timeout);
  const bool registered = world_.wait(nullptr, world_.now() + seconds(10),
                                      [this] { return !cluster_.incarnation_of_last_server().empty(); });
  if (!registered) world_.fail("The last server does not register again.");
}

// The last server polls at least every five seconds, and its clock is right.
void Scenario::check_pruning() {
  constexpr auto kPatience = seconds(10);
  if (world_.now() - quiet_since_ < kPatience) return world_.count("ends too early to check what is kept");
  const auto kept =
      cluster_.jobs.kept_too_long(cluster_.true_clock.wall_ms() - milliseconds(kPatience).count());
  if (kept)
    world_.fail(fmt::format("Job {}/{} ended, and is kept beyond its retention.", kept->first, kept->second));
}

void Scenario::main() {
  start_processes();
  inject_faults();
  stop_faults();
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
