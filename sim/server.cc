// A server: keeps a worker registered, looks after the others' and after silent jobs, and works on jobs.
#include "sim/town.h"

namespace divan::sim {
namespace {

using jobs::AcceptedJob;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Server {
 public:
  Server(Town& town, Process& process)
      : base_(town, process),
        world_(town.world),
        rng_(world_.rng()),
        clock_(*process.clock),
        monitor_(base_.store, base_.registry, clock_, *process.rng),
        maintenance_(base_.queue, base_.store, clock_),
        acceptor_(base_.queue, base_.store, clock_) {}

  // In the last task of this life, which cannot be unwound here.
  ~Server() {
    if (worker_ != nullptr && !world_.is_unwinding()) {
      base_.town.workers.expect_removal(worker_->ref().incarnation);
      worker_.reset();
    }
  }

  void watch_workers() {
    while (worker_ == nullptr) {
      try {
        worker_ = monitor_.add(kRole, base_.process.name, "{}", base_.town.plan.worker_timeout);
      } catch (const kv::Error& error) { base_.check_expected(error); }
    }
    while (!leaving_) sleep_until(monitor_.step());
  }

  void watch_jobs() {
    while (!leaving_) sleep_until(maintenance_.step());
  }

  void work();
  void subscribe();
  void retire();

 private:
  void sleep_until(MonotonicTime time) {
    world_.wait(nullptr, world_.now() + std::max(Duration(), time - clock_.now()),
                [this] { return leaving_; });
  }
  void check_is(std::string_view name, const Error& error) {
    if (error.name() != name) world_.fail(fmt::format("An error that nobody expects: {}", error.what()));
  }
  void attempt(const AcceptedJob& job);
  // Answers whether the attempt is over.
  bool update(const AcceptedJob& job, bool& cancel);
  void end(const AcceptedJob& job, Step::Kind how);
  void watch_a_job();
  void watch_members();

  Base base_;
  World& world_;
  Rng& rng_;
  const SimClock& clock_;
  workers::Monitor monitor_;
  jobs::Maintenance maintenance_;
  jobs::Acceptor acceptor_;
  std::unique_ptr<workers::LocalWorker> worker_;
  bool leaving_ = false;
};

void Server::work() {
  const Plan& plan = base_.town.plan;
  while (!leaving_) {
    jobs::AcceptOptions options;
    options.limit = base_.town.quiet ? 1 : 1 + rng_.below(3);
    if (worker_ != nullptr && happens(rng_, plan.with_worker)) {
      options.worker = worker_->ref();
      if (rng_.below(4) == 0) options.worker->incarnation.clear();
    }
    std::vector<AcceptedJob> accepted;
    try {
      accepted = acceptor_.accept(plan.types, options, clock_.now() + between(rng_, seconds(1), seconds(20)));
    } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
      world_.count("accept: not a worker any more");
      world_.pause(milliseconds(100));
    }
    // What was accepted and is not worked on yet is held, too.
    struct Held {
      ~Held() {
        for (const auto& job : jobs) town.held.erase(job.job.lock);
      }
      Town& town;
      const std::vector<AcceptedJob>& jobs;
    } held{base_.town, accepted};
    for (const auto& job : accepted) base_.town.held.insert(job.job.lock);
    for (const auto& job : accepted) attempt(job);
  }
}

void Server::attempt(const AcceptedJob& job) {
  const Plan& plan = base_.town.plan;
  const bool quiet = base_.town.quiet;
  const Duration timeout = plan.settings.at(job.job.type).timeout;
  world_.trace(fmt::format("works on {}/{} {}", job.job.type, job.job.id, job.job.lock));
  const bool alone = job.job.worker_id.empty();
  bool cancel = false;
  for (std::uint64_t i = 0, updates = quiet ? 0 : rng_.below(4); i < updates && !cancel; ++i) {
    const bool late = happens(rng_, plan.late);
    world_.pause(late ? between(rng_, timeout, timeout * 3) : base_.pause_up_to(timeout / 2));
    if (update(job, cancel)) return;
  }
  world_.pause(base_.pause_up_to(quiet ? Duration(milliseconds(100)) : timeout / 2));
  if (!quiet && alone && happens(rng_, plan.forget)) {
    world_.count("forgotten by its attempt");
    return;
  }
  if (!quiet && happens(rng_, plan.failing)) return end(job, Step::Kind::fail);
  if (!quiet && rng_.below(20) == 0) return end(job, Step::Kind::release);
  end(job, Step::Kind::finish);
}

bool Server::update(const AcceptedJob& job, bool& cancel) {
  const auto data = rng_.below(4) == 0 ? std::optional(job.data) : std::nullopt;
  const auto progress = rng_.below(2) == 0 ? std::optional(fmt::format("{}", rng_.below(100))) : std::nullopt;
  const auto go = [&](kv::Transaction& tx) {
    cancel = jobs::update(base_.queue, tx, job.attempt(), data, progress).cancel;
  };
  if (rng_.below(2) == 0) {
    Step step{.kind = Step::Kind::update, .type = job.job.type, .id = job.job.id, .lock = job.job.lock};
    return base_.perform(step, go) == false;
  }
  // An update that nothing else is written with.
  try {
    base_.store.run(go);
  } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
    world_.count("halts of updates");
    return true;
  }
  return false;
}

void Server::end(const AcceptedJob& job, Step::Kind how) {
  // Whoever rides on a worker must go on until there is an answer: nobody takes the job from it.
  for (std::optional<bool> told; !told && !world_.is_unwinding();) {
    Step step{.kind = how, .type = job.job.type, .id = job.job.id, .lock = job.job.lock};
    told = base_.perform(step, [&](kv::Transaction& tx) {
      const auto attempt = job.attempt();
      if (how == Step::Kind::fail) return jobs::fail(base_.queue, tx, attempt, "It did not work.");
      if (how == Step::Kind::release) return jobs::release(base_.queue, tx, attempt);
      jobs::finish(base_.queue, tx, attempt);
      tx.add(effect_key(job.job.type, job.job.id), 1);
    });
  }
}

void Server::subscribe() {
  while (!leaving_) {
    try {
      rng_.below(2) == 0 ? watch_a_job() : watch_members();
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }
}

void Server::watch_a_job() {
  const Plan& plan = base_.town.plan;
  const JobInvariants::Name name{plan.types[rng_.below(plan.types.size())],
                                 fmt::format("job{}", rng_.below(plan.ids))};
  kv::Version version = 0;
  const auto watch = base_.store.run([&](kv::Transaction& tx) {
    version = tx.read_version();
    return base_.queue.watch(tx, name.first, name.second);
  });
  if (watch->wait_until(clock_, clock_.now() + seconds(10))) return world_.count("watches that ended");
  if (base_.town.jobs.last_change(name) > version && !watch->fired()) {
    world_.fail(fmt::format("Who watched job {}/{} missed its change.", name.first, name.second));
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
  const auto& known = base_.town.members.emplace(members.version.hex(), incarnations).first->second;
  if (known != incarnations) world_.fail("One version of the members has two sets of them.");
  if (watch->wait_until(clock_, clock_.now() + seconds(10))) return world_.count("watches that ended");
  if (base_.town.workers.last_change() > version && !watch->fired()) {
    world_.fail("Who watched the members missed a change.");
  }
}

void Server::retire() {
  // A server is stopped now and then, and starts again.
  const Duration life = between(rng_, seconds(5), std::chrono::minutes(5));
  world_.wait(nullptr, world_.now() + life, [this] { return base_.town.quiet; });
  // In quiet nobody leaves before the work is done.
  if (base_.town.quiet) {
    world_.wait(nullptr, MonotonicTime::max(),
                [this] { return base_.town.closing && base_.town.last_server != &base_.process; });
  }
  leaving_ = true;
  acceptor_.interrupt();
}

}  // namespace

void start_server(Town& town, Process& process) {
  auto server = std::make_shared<Server>(town, process);
  const auto spawn = [&](const std::string& name, void (Server::*task)()) {
    town.world.spawn(&process, name, [server, task] { (server.get()->*task)(); });
  };
  spawn("monitor", &Server::watch_workers);
  spawn("jobs", &Server::watch_jobs);
  for (std::size_t i = 0; i < town.plan.acceptors; ++i) spawn(fmt::format("worker{}", i), &Server::work);
  spawn("watcher", &Server::subscribe);
  spawn("stop", &Server::retire);
}

}  // namespace divan::sim
