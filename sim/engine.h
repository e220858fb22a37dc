// The store of a world, without its faults: the reference engine, or the embedded one on a simulated disk.
#pragma once

#include <rocksdb/env.h>

#include "divan/kv/embedded/engine.h"
#include "divan/kv/embedded/testing/simulated_disk.h"
#include "divan/kv/reference/reference.h"
#include "sim/faults.h"
#include "sim/world.h"

namespace divan::sim {

/// One write of a transaction, as it was requested.
struct Write {
  enum class Kind { set, clear, clear_range, atomic, stamped_key, stamped_value };
  Kind kind = Kind::set;
  std::string key;
  std::string value{};  // of clear_range: the end
  kv::AtomicOp op{};
};

/// What a transaction writes, for the observer of commits.
struct Written {
  std::vector<Write> writes;  // in order
  std::string stamp;          // the commit's versionstamp, ten bytes
  kv::Version version = 0;
  // The wall clock of its process in milliseconds when the transaction began (or was reset), and when it was
  // committed.
  std::int64_t began_ms = 0;
  std::int64_t committed_ms = 0;
  MonotonicTime began{};  // in true time
};

/// The embedded engine in its one process. RocksDB runs as in the server, except that its background work is
/// done when it is opened: the real machine would decide when its threads use the disk, not the seed.
class EmbeddedStore {
 public:
  /// Creates and opens the store.
  EmbeddedStore(Process& process, Rng& rng);
  ~EmbeddedStore();

  kv::embedded::EmbeddedDatabase& database() { return *database_; }
  Process& process() { return process_; }

  /// The power fails now.
  void cut_power() {
    cut_power_after(0);
    off_ = true;
  }
  /// The power fails after `operations` more operations of the disk.
  void cut_power_after(std::uint64_t operations) { disk_->cut_after(operations); }
  /// Cancels a cut that has not happened.
  void keep_power();
  bool is_cut() const { return off_ || disk_->is_cut(); }

  /// Opens the store again, after the power is back if it failed. With the chance `interrupted` (in parts of
  /// a million) the power fails while it is opened. No transaction may exist. Returns the number of power
  /// cuts since it was last open.
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

/// The store of a world, and the callback that observes its commits.
struct Engine {
  Engine(World& the_world, const Clock& clock, Rng& rng) : world(the_world), reference(clock, rng) {}

  /// Makes the store an embedded one, which only this process uses.
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
  /// Called after each commit that wrote something, before another task runs.
  std::function<void(const Written&)> on_commit;
  /// The commit during which the power failed, whose outcome is unknown until the restart.
  std::optional<Written> interrupted;

  /// A commit that arrives at the reference store later. Its process has got an unknown result.
  struct LateCommit {
    std::unique_ptr<kv::Transaction> tx;
    Written written;
    Process& process;
    int incarnation;
  };
  std::vector<LateCommit> late;
};

}  // namespace divan::sim
