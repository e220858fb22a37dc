// Consumers of jobs: they accept jobs, send updates, and end them, as reliably as the plan says.
#pragma once

#include "sim/cluster.h"

namespace divan::sim {

/// Belongs to one incarnation of a process. Any number of its tasks may call work().
class Consumer {
 public:
  explicit Consumer(Base& base)
      : base_(base),
        world_(base.world),
        rng_(base.world.rng()),
        acceptor_(base.queue, base.store, *base.process.clock) {}

  /// Works until leave(). `worker` returns the worker that jobs may be accepted for.
  void work(const std::function<std::optional<workers::WorkerRef>()>& worker);
  void leave();
  /// Adds a job, which is handed over to a task that waits for one.
  void add_job(const std::string& type);

 private:
  std::vector<jobs::AcceptedJob> accept(const std::optional<workers::WorkerRef>& worker);
  void attempt(const jobs::AcceptedJob& job);
  std::string any_data(const jobs::AcceptedJob& job);
  // Returns true if the attempt has lost the job.
  bool update(const jobs::AcceptedJob& job, bool& cancel);
  void end(const jobs::AcceptedJob& job, Step::Kind how);

  Base& base_;
  World& world_;
  Rng& rng_;
  jobs::Acceptor acceptor_;
  bool leaving_ = false;
  int made_ = 0;
};

}  // namespace divan::sim
