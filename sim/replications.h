// Replications between databases of the world's store and of another one, which is reached as if by HTTP.
#pragma once

#include "divan/docs/uploads.h"
#include "divan/js/pool.h"
#include "divan/replicator/run.h"
#include "sim/cluster.h"

namespace divan::sim {

/// One replication. Databases of the other store begin with kOtherStore.
struct Replicated {
  std::string_view source;
  std::string_view target;
};
inline constexpr std::string_view kOtherStore = "http://other/";
/// The sources are those of the writers, and what comes back from the other store.
inline constexpr Replicated kReplications[] = {
    {"a", "copy-a"}, {"b", "http://other/b"}, {"http://other/b", "copy-b"}};

/// Adds the jobs of all replications, which are continuous.
void add_replications(jobs::Queue& queue, kv::Transaction& tx, Duration checkpoint_interval);

/// Returns what a target lacks that its source has; nullopt: nothing. For a time when nothing is written.
std::optional<std::string> missing_in_targets(Cluster& cluster);

/// Works on replications, as the replicator does. Belongs to one incarnation of a node.
class ReplicationTasks {
 public:
  ReplicationTasks(Base& base, docs::Catalog& catalog);

  /// Of one task, which has one replication at a time, until leave(). `worker` returns the node's worker,
  /// null before it is registered.
  void work(const std::function<const workers::LocalWorker*()>& worker);
  void leave();
  /// Deletes a target and creates it again.
  void recreate_target();

 private:
  bool goes_on() const { return !leaving_ && !world_.is_unwinding(); }
  void recreate_other();
  void run(const jobs::AcceptedJob& job);
  bool has(const jobs::AcceptedJob& job);

  Base& base_;
  World& world_;
  const Clock& clock_;
  docs::Catalog& catalog_;
  js::Pool pool_;  // unused: no database has functions for it
  docs::Uploads uploads_;
  jobs::Acceptor acceptor_;
  // The other store.
  Store other_store_;
  events::Bus other_bus_;
  docs::Catalog other_catalog_;
  docs::Uploads other_uploads_;
  const replicator::LocalStore other_;
  MonotonicTime cut_off_until_{};  // from the other store
  bool leaving_ = false;
};

}  // namespace divan::sim
