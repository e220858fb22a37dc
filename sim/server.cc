// A server: keeps a worker registered, evicts others' workers, reclaims jobs, and works on jobs.
#include <fmt/core.h>

#include "sim/consumer.h"

namespace divan::sim {
namespace {

using std::chrono::seconds;

class Server {
 public:
  Server(Cluster& cluster, Process& process)
      : base_(cluster, process),
        world_(cluster.world),
        rng_(world_.rng()),
        clock_(*process.clock),
        monitor_(base_.store, base_.registry, clock_, *process.rng),
        maintenance_(base_.queue, base_.store, clock_),
        consumer_(base_) {}

  // In the last task of this incarnation, which cannot be unwound here.
  ~Server() {
    for (auto* worker : {&worker_, &node_}) {
      if (*worker == nullptr || world_.is_unwinding()) continue;
      base_.cluster.workers.expect_removal((*worker)->ref().incarnation);
      worker->reset();
    }
  }

  void watch_workers() {
    while (worker_ == nullptr) {
      try {
        const Duration timeout = base_.cluster.plan.worker_timeout;
        if (node_ == nullptr) node_ = monitor_.add(workers::kNodeRole, base_.process.name, "{}", timeout);
        worker_ = monitor_.add(kRole, base_.process.name, "{}", timeout);
      } catch (const kv::Error& error) { base_.check_expected(error); }
    }
    while (!leaving_) {
      const MonotonicTime next = monitor_.step();
      sleep_until(next, [this] { return monitor_.woken(); });
    }
  }

  void watch_jobs() {
    while (!leaving_) sleep_until(maintenance_.step());
  }

  void work() {
    consumer_.work([this] { return worker_ == nullptr ? std::nullopt : std::optional(worker_->ref()); });
  }
  void add_jobs();
  void subscribe();
  void leave();

 private:
  void sleep_until(
      MonotonicTime time, const std::function<bool()>& woken = [] { return false; }) {
    world_.wait(nullptr, world_.now() + std::max(Duration(), time - clock_.now()),
                [&] { return leaving_ || woken(); });
  }
  void watch_a_job();
  void watch_members();

  Base base_;
  World& world_;
  Rng& rng_;
  const Clock& clock_;
  workers::Monitor monitor_;
  jobs::Maintenance maintenance_;
  Consumer consumer_;
  std::unique_ptr<workers::LocalWorker> node_;  // makes it one of several observers of workers
  std::unique_ptr<workers::LocalWorker> worker_;
  bool leaving_ = false;
};

void Server::add_jobs() {
  const Plan& plan = base_.cluster.plan;
  while (plan.jobs && !leaving_ && !base_.cluster.quiet) {
    world_.pause(base_.pause_up_to(2 * plan.client_pause));
    consumer_.add_job(plan.types[rng_.below(plan.types.size())]);
  }
}

void Server::subscribe() {
  while (!leaving_) {
    try {
      base_.cluster.plan.jobs&& rng_.below(2) == 0 ? watch_a_job() : watch_members();
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }
}

void Server::watch_a_job() {
  const Plan& plan = base_.cluster.plan;
  const JobInvariants::Name name{plan.types[rng_.below(plan.types.size())],
                                 fmt::format("job{}", rng_.below(plan.ids))};
  kv::Version version = 0;
  bool was_there = false;
  const auto watch = base_.store.run([&](kv::Transaction& tx) {
    version = tx.read_version();
    was_there = base_.queue.find(tx, name.first, name.second, kv::Isolation::snapshot).has_value();
    return base_.queue.watch(tx, name.first, name.second);
  });
  if (watch == nullptr) return;  // the store has too many
  if (watch->wait_until(clock_, clock_.now() + seconds(10))) return world_.count("watches that ended");
  // A watch need not notice that the row was created and removed again before it was set.
  if (!was_there && !base_.cluster.jobs.is_there(name)) return;
  if (base_.cluster.jobs.last_change(name) > version && !watch->fired()) {
    world_.fail(fmt::format("A watch on job {}/{} missed its change.", name.first, name.second));
  }
}

void Server::watch_members() {
  kv::Version version = 0;
  std::shared_ptr<kv::Watch> watch;
  const auto members = base_.store.run([&](kv::Transaction& tx) {
    version = tx.read_version();
    watch = base_.registry.watch(tx, kRole);
    return base_.registry.members(tx, kRole);
  });
  std::vector<std::string> incarnations;
  for (const auto& worker : members.workers) incarnations.push_back(worker.incarnation);
  const auto& known = base_.cluster.members.emplace(members.version.hex(), incarnations).first->second;
  if (known != incarnations) world_.fail("One version of the members has two lists.");
  if (watch == nullptr) return;  // the store has too many
  if (watch->wait_until(clock_, clock_.now() + seconds(10))) return world_.count("watches that ended");
  // As in watch_a_job(): a role without workers has no row.
  if (incarnations.empty() && !base_.cluster.workers.has_workers(kRole)) return;
  if (base_.cluster.workers.last_change(std::string(kRole)) > version && !watch->fired()) {
    world_.fail("A watch on the members missed a change.");
  }
}

void Server::leave() {
  base_.wait_to_leave();
  leaving_ = true;
  consumer_.leave();
}

}  // namespace

void start_server(Cluster& cluster, Process& process) {
  auto server = std::make_shared<Server>(cluster, process);
  const auto spawn = [&](const std::string& name, void (Server::*task)()) {
    cluster.world.spawn(&process, name, [server, task] { (server.get()->*task)(); });
  };
  spawn("monitor", &Server::watch_workers);
  spawn("jobs", &Server::watch_jobs);
  for (std::size_t i = 0; i < cluster.plan.acceptors; ++i) spawn(fmt::format("worker{}", i), &Server::work);
  spawn("adder", &Server::add_jobs);
  spawn("watcher", &Server::subscribe);
  spawn("stop", &Server::leave);
}

}  // namespace divan::sim
