// What the actors of one world share: the store, its observers, and the plan of what the actors do.
#pragma once

#include <fmt/core.h>

#include "divan/jobs/acceptor.h"
#include "divan/jobs/maintenance.h"
#include "divan/workers/monitor.h"
#include "sim/attempt_note.h"
#include "sim/index_invariants.h"
#include "sim/job_invariants.h"
#include "sim/sim_clock.h"
#include "sim/steps.h"
#include "sim/triggers.h"
#include "sim/worker_invariants.h"

namespace divan::sim {

inline constexpr std::string_view kRole = "server";
/// The databases of the nodes.
inline constexpr std::string_view kDatabases[] = {"a", "b"};

/// What the processes of a world do. Drawn anew for each seed.
struct Plan {
  std::vector<std::string> types;
  std::map<std::string, jobs::TypeSettings> settings;
  std::size_t ids = 8;  // names of jobs that the clients share
  Duration worker_timeout{};
  std::size_t acceptors = 2;         // a server; 0 without jobs
  std::uint64_t with_worker = 0;     // chance that an accept is for the server's worker
  std::uint64_t late = 0;            // chance that a pause of an attempt is longer than its timeout
  std::uint64_t forget = 0;          // chance that an attempt without a worker is dropped
  std::uint64_t failing = 0;         // chance that an attempt fails
  std::uint64_t late_heartbeat = 0;  // chance that a remote worker's heartbeat is as late as its eviction
  std::uint64_t unregistering = 0;   // chance that it unregisters instead of sending one, and registers again
  std::uint64_t clearing = 0;        // chance that a client's operation is to remove a type with its jobs
  Duration client_pause{};           // between the operations of a client, at most

  bool embedded = false;      // one process has the embedded store
  bool jobs = true;           // there are clients and workers of jobs; else there are no types
  bool periodic = false;      // clients add jobs with schedules
  std::uint64_t nodes = 0;    // that have databases
  std::size_t writers = 1;    // a node
  std::size_t builders = 1;   // a node
  std::size_t documents = 8;  // ids of documents that the writers share
  std::size_t batch = 1;      // documents that are mapped at once
  Duration writer_pause{};    // between the operations of a writer, at most
  Duration longest_map{};     // of a batch
  Duration build_timeout{};   // of the jobs that build indexes
  bool replications = false;  // between databases of the nodes, and of another store
  Duration checkpoint_interval{};

  static Plan random(Rng& rng);
};

struct Cluster {
  explicit Cluster(World& the_world);

  World& world;
  SimClock true_clock;
  SeededRng engine_rng;
  Engine engine;
  Engine other;  // the store of another server, to which databases are replicated
  Observer observer;
  StepsDone steps;
  JobInvariants jobs;
  WorkerInvariants workers;
  AttemptInvariants attempts;
  DatabaseInvariants databases;
  IndexInvariants indexes;
  TriggerInvariants triggers;
  Plan plan;
  bool quiet = false;    // no more faults and no new work, so that all pending work ends
  int bursts = 0;        // of writes that were requested of the nodes' writers while it is quiet
  bool closing = false;  // all processes except the last server stop
  const Process* last_server = nullptr;
  std::set<const Process*> leaving;                         // that stop regularly and start again
  std::set<std::string> held;                               // locks of attempts that a consumer works on
  std::map<std::string, std::vector<std::string>> members;  // of the role, by version
  // The state of readers, which survives crashes of their nodes: by node and database, and by node.
  std::map<std::pair<std::string, std::string>, ChangesReader> readers;
  std::map<std::string, FeedReader> feed_readers;
  // The last sequence of "b" when its target was created again.
  kv::Versionstamp other_created_after;

  /// Returns an empty string while it is not registered.
  std::string incarnation_of_last_server() const {
    return workers.incarnations()[{std::string(kRole), last_server->name}];
  }

  std::string token() { return fmt::format("{}", ++tokens_); }

 private:
  std::int64_t tokens_ = 0;
};

/// What each process has that uses the store, in one of its incarnations.
struct Base {
  Base(Cluster& the_cluster, Process& the_process)
      : cluster(the_cluster),
        process(the_process),
        world(the_cluster.world),
        store(the_cluster.engine, the_process),
        registry(*the_process.rng),
        queue(registry, *the_process.clock, *the_process.rng) {
    // Otherwise one transaction would reclaim all jobs, since there are so few.
    queue.set_reclaimed_at_once(1);
  }

  Cluster& cluster;
  Process& process;
  World& world;
  Store store;
  workers::Registry registry;
  jobs::Queue queue;

  /// Runs a step in its own transaction, which records it, and compares the result with what was committed.
  /// Returns whether it was done, nullopt if that is unknown. `fn` may complete the step. `also` is recorded
  /// in the same transaction.
  std::optional<bool> perform(Step& step, const std::function<void(kv::Transaction&)>& fn,
                              Step* also = nullptr);

  /// Adds a job that is due at once, which wakes acceptors. `then` is called in the same transaction. Returns
  /// whether it was added, nullopt if that is unknown.
  std::optional<bool> add_job(
      const std::string& type, const std::function<void(kv::Transaction&)>& then = [](auto&) {});

  /// Fails unless the error is one that run() may throw here: it timed out, or the process has crashed.
  void check_expected(const kv::Error& error);

  /// Fails unless the error has this name.
  void check_is(std::string_view name, const Error& error);

  /// Returns true if this incarnation of the process is to stop regularly.
  bool is_leaving() const { return cluster.leaving.contains(&process); }

  /// Waits until this incarnation of the process is to stop regularly. While it is quiet, that is when all
  /// work is done.
  void wait_to_leave();

  Duration pause_up_to(Duration longest) { return between(world.rng(), {}, longest); }
};

/// Starts an incarnation of a process. Its tasks own its memory.
using Start = std::function<void(Cluster&, Process&)>;
void start_server(Cluster& cluster, Process& process);
void start_remote(Cluster& cluster, Process& process);
void start_client(Cluster& cluster, Process& process);
void start_node(Cluster& cluster, Process& process);

}  // namespace divan::sim
