// The store as the simulated processes reach it: each operation yields to other tasks, takes time, and fails
// as often as the world's faults say.
#pragma once

#include "divan/kv/forwarding.h"
#include "sim/engine.h"

namespace divan::sim {

/// The access of one incarnation of a process to the engine. After a crash it does nothing.
class Store final : public kv::Database {
 public:
  Store(Engine& engine, Process& process) : engine_(engine), process_(process) {}

  std::unique_ptr<kv::Transaction> begin() override;
  kv::Version dump(const kv::RowVisitor& visit) override { return engine_.database().dump(visit); }
  std::int64_t estimate_bytes(const kv::KeyRange& range) override {
    return engine_.database().estimate_bytes(range);
  }
  void advance_version(kv::Version at_least) override { engine_.database().advance_version(at_least); }

  Engine& engine() { return engine_; }
  Process& process() { return process_; }
  /// A step of an operation: time passes. Throws Crash, or transaction_cancelled if the process has crashed
  /// and its task is unwinding.
  void step();

 private:
  Engine& engine_;
  Process& process_;
};

}  // namespace divan::sim
