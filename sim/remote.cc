// A worker in another language: it sends its own heartbeats, changes its offers, and works on jobs. It
// neither reclaims jobs nor evicts workers.
#include <fmt/core.h>

#include "sim/consumer.h"

namespace divan::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Remote {
 public:
  Remote(Cluster& cluster, Process& process)
      : base_(cluster, process), world_(cluster.world), rng_(world_.rng()), consumer_(base_) {}

  void stay_registered();
  void work() {
    consumer_.work([this] { return ref_; });
  }
  void leave();

 private:
  void enter();
  void beat();
  void unregister();
  Duration pause();

  Base base_;
  World& world_;
  Rng& rng_;
  Consumer consumer_;
  std::optional<workers::WorkerRef> ref_;
  bool leaving_ = false;
};

// Registers, or changes the offers of its registration.
void Remote::enter() {
  const std::string incarnation = ref_ ? ref_->incarnation : "";
  const std::string offers = fmt::format(R"({{"speed":{}}})", rng_.below(3));
  ref_ = base_.store.run([&](kv::Transaction& tx) {
    return base_.registry.add(tx, kRole, base_.process.name, offers, base_.cluster.plan.worker_timeout,
                              incarnation);
  });
  if (!incarnation.empty())
    world_.count(ref_->incarnation == incarnation ? "offers changed" : "registered again");
}

void Remote::beat() {
  const bool alive =
      base_.store.run([&](kv::Transaction& tx) { return base_.registry.heartbeat(tx, *ref_); });
  if (alive) return;
  world_.count("evicted remote workers that noticed it");
  ref_.reset();
}

void Remote::stay_registered() {
  while (!leaving_) {
    try {
      if (ref_ && !base_.cluster.quiet && happens(rng_, base_.cluster.plan.unregistering)) {
        const auto& types = base_.cluster.plan.types;
        // Which it may be accepting while it is unregistered.
        if (rng_.below(4) > 0) base_.add_job(types[rng_.below(types.size())]);
        unregister();
      }
      ref_&& rng_.below(10) > 0 ? beat() : enter();
    } catch (const kv::Error& error) { base_.check_expected(error); }
    world_.wait(nullptr, world_.now() + pause(), [this] { return leaving_; });
  }
  if (ref_) unregister();
}

Duration Remote::pause() {
  if (!ref_) return milliseconds(10);
  const Duration timeout = base_.cluster.plan.worker_timeout;
  const bool late = !base_.cluster.quiet && happens(rng_, base_.cluster.plan.late_heartbeat);
  return late ? between(rng_, timeout, timeout * 3 / 2) : timeout / 3;
}

// Other tasks may be accepting a job for it meanwhile.
void Remote::unregister() {
  base_.cluster.workers.expect_removal(ref_->incarnation);
  try {
    base_.store.run([&](kv::Transaction& tx) { base_.registry.remove(tx, *ref_); });
  } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
    base_.check_is("not_found", error);
  }
  ref_.reset();
}

void Remote::leave() {
  base_.wait_to_leave();
  leaving_ = true;
  consumer_.leave();
}

}  // namespace

void start_remote(Cluster& cluster, Process& process) {
  auto remote = std::make_shared<Remote>(cluster, process);
  cluster.world.spawn(&process, "beat", [remote] { remote->stay_registered(); });
  cluster.world.spawn(&process, "worker", [remote] { remote->work(); });
  cluster.world.spawn(&process, "stop", [remote] { remote->leave(); });
}

}  // namespace divan::sim
