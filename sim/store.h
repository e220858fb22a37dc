// The store as a process of the simulated world reaches it: every operation gives way to others and takes
// time, and goes wrong as often as the world's faults say.
#pragma once

#include "divan/kv/forwarding.h"
#include "sim/engine.h"

namespace divan::sim {

/// One process's access to the engine, in one of its incarnations. After a crash it does nothing.
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
  /// A step of an operation: time passes; throws Crash, or transaction_cancelled where the process has
  /// crashed and is unwinding.
  void step();

 private:
  Engine& engine_;
  Process& process_;
};

}  // namespace divan::sim
