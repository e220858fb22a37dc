// The store of a world, without its faults: the reference engine, or the embedded one on a disk that can lose
// its power.
#pragma once

#include <rocksdb/env.h>

#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"
#include "divan/kv/reference/reference.h"
#include "sim/faults.h"
#include "sim/world.h"

namespace divan::sim {

/// One write of a transaction, as it was made.
struct Write {
  enum class Kind { set, clear, clear_range, atomic, stamped_key, stamped_value };
  Kind kind = Kind::set;
  std::string key;
  std::string value{};  // of clear_range: the end
  kv::AtomicOp op{};
};

/// What a transaction writes. For the observer of commits.
struct Written {
  std::vector<Write> writes;  // in order
  std::string stamp;          // the commit's versionstamp, ten bytes
  kv::Version version = 0;
  // What the wall clock of its process showed, in milliseconds: as the transaction began (again), and as it
  // was committed.
  std::int64_t began_ms = 0;
  std::int64_t committed_ms = 0;
  MonotonicTime began{};  // in true time
};

/// The embedded engine as it runs in its one process. RocksDB runs as in the server, except that its
/// background work is done when it is opened: its threads would use the disk whenever the real machine lets
/// them.
class EmbeddedStore {
 public:
  /// Makes the directory and opens it.
  EmbeddedStore(Process& process, Rng& rng);
  ~EmbeddedStore();

  kv::embedded::EmbeddedDatabase& database() { return *database_; }
  Process& process() { return process_; }

  /// The power fails now.
  void cut_power() {
    cut_power_after(0);
    off_ = true;
  }
  /// The power fails at the operation of the disk after so many more.
  void cut_power_after(std::uint64_t operations) { disk_->cut_after(operations); }
  /// A cut that was to come does not.
  void keep_power();
  bool is_cut() const { return off_ || disk_->is_cut(); }

  /// What a machine does that starts again: the store is opened, after the power has come back. In
  /// `interrupted` of a million cases the power fails while it is opened. No transaction may be left. Returns
  /// how often the power failed since it was last opened.
  int restart(std::uint64_t interrupted);

 private:
  class Machine;
  void open();

  Process& process_;
  Rng& rng_;
  const std::shared_ptr<kv::embedded::SimulatedDisk> disk_;
  const std::unique_ptr<Machine> machine_;
  bool off_ = false;
  std::unique_ptr<kv::embedded::EmbeddedDatabase> database_;
};

/// The one engine of a world, with the observer of its commits.
struct Engine {
  Engine(World& the_world, const Clock& clock, Rng& rng) : world(the_world), reference(clock, rng) {}

  /// From here on the store is an embedded one, which the process has for itself.
  void embed(Process& process, Rng& rng) { embedded = std::make_unique<EmbeddedStore>(process, rng); }

  kv::Database& database() { return embedded ? static_cast<kv::Database&>(embedded->database()) : reference; }
  std::unique_ptr<kv::Transaction> begin(const Process& process) {
    return embedded ? embedded->database().begin() : reference.begin(*process.clock, *process.rng);
  }

  World& world;
  kv::reference::ReferenceDatabase reference;
  std::unique_ptr<EmbeddedStore> embedded;
  bool is_open = true;
  Faults faults;
  /// Called after every commit that wrote something, before anybody else runs.
  std::function<void(const Written&)> on_commit;
  /// The commit during which the power failed: it was made, or it was not.
  std::optional<Written> interrupted;

  /// A commit that has yet to arrive at the reference store. Its process takes it for lost.
  struct LateCommit {
    std::unique_ptr<kv::Transaction> tx;
    Written written;
    Process& process;
    int incarnation;
  };
  std::vector<LateCommit> late;
};

}  // namespace divan::sim
