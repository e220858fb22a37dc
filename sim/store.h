// The store as a process of the simulated world reaches it: every operation gives way to others and takes
// time, and goes wrong as often as the world's faults say.
#pragma once

#include <set>

#include "divan/kv/forwarding.h"
#include "divan/kv/reference/reference.h"
#include "sim/faults.h"
#include "sim/world.h"

namespace divan::sim {

/// What a transaction may have changed. For the observer of commits.
struct Written {
  std::set<std::string> keys;
  std::vector<kv::KeyRange> ranges;
  std::string stamp;  // the commit's versionstamp, ten bytes
  kv::Version version = 0;
  // What the wall clock of who wrote it showed, in milliseconds: as the transaction began (again), and as it
  // was committed.
  std::int64_t began_ms = 0;
  std::int64_t committed_ms = 0;
  MonotonicTime began{};  // in true time
};

/// The one engine of a world, with whoever watches over its commits.
struct Engine {
  Engine(World& the_world, const Clock& clock, Rng& rng) : world(the_world), database(clock, rng) {}

  World& world;
  kv::reference::ReferenceDatabase database;
  Faults faults;
  /// Called after every commit that wrote something, before anybody else runs.
  std::function<void(const Written&)> on_commit;

  /// A commit that has yet to arrive. Its process takes it for lost.
  struct LateCommit {
    std::unique_ptr<kv::Transaction> tx;
    Written written;
    std::vector<std::string> stamped_keys;
    Process& process;
    int life;
  };
  std::vector<LateCommit> late;
};

/// One process's way to the engine, during one of its lives. After a crash nothing can be done with it.
class Store final : public kv::Database {
 public:
  Store(Engine& engine, Process& process) : engine_(engine), process_(process) {}

  std::unique_ptr<kv::Transaction> begin() override;
  kv::Version dump(const kv::RowVisitor& visit) override { return engine_.database.dump(visit); }
  std::int64_t estimate_bytes(const kv::KeyRange& range) override {
    return engine_.database.estimate_bytes(range);
  }
  void advance_version(kv::Version at_least) override { engine_.database.advance_version(at_least); }

  /// A transaction of the engine itself, without faults.
  std::unique_ptr<kv::Transaction> begin_inner() {
    return engine_.database.begin(*process_.clock, *process_.rng);
  }

  Engine& engine() { return engine_; }
  Process& process() { return process_; }
  /// A step of an operation: time passes; throws Crash, or transaction_cancelled where the process has
  /// crashed and is unwinding.
  void step();

 private:
  Engine& engine_;
  Process& process_;
};

}  // namespace divan::sim
