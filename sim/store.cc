#include "sim/store.h"

#include <utility>

#include "divan/kv/stamping.h"

namespace divan::sim {
namespace {

using kv::ErrorCode;
using kv::Isolation;
using std::chrono::microseconds;
using std::chrono::milliseconds;

class FaultyTransaction final : public kv::ForwardingTransaction {
 public:
  FaultyTransaction(Store& store, std::unique_ptr<kv::Transaction> inner)
      : ForwardingTransaction(std::move(inner)), store_(store), engine_(store.engine()) {
    note_beginning();
  }

  std::optional<std::string> get(std::string_view key, Isolation isolation) override {
    read();
    return inner().get(key, isolation);
  }
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   Isolation isolation) override {
    read();
    return inner().get_many(keys, isolation);
  }
  bool scan(const kv::KeyRange& range, const kv::RangeOptions& options,
            const kv::RowVisitor& visit) override {
    read();
    return inner().scan(range, options, visit);
  }
  std::shared_ptr<kv::Watch> watch(std::string_view key) override {
    read();
    auto watch = inner().watch(key);
    if (happens(engine_.world.rng(), engine_.faults.watch_lost)) {
      engine_.world.count("fault: watch lost");
      watch->cancel();
    }
    watches_.push_back(watch);
    return watch;
  }

  void set(std::string_view key, std::string_view value) override {
    inner().set(key, value);
    wrote({Write::Kind::set, std::string(key), std::string(value)});
  }
  void clear(std::string_view key) override {
    inner().clear(key);
    wrote({Write::Kind::clear, std::string(key)});
  }
  using Transaction::clear_range;
  void clear_range(std::string_view begin, std::string_view end) override {
    inner().clear_range(begin, end);
    wrote({Write::Kind::clear_range, std::string(begin), std::string(end)});
  }
  void atomic(kv::AtomicOp op, std::string_view key, std::string_view operand) override {
    inner().atomic(op, key, operand);
    wrote({Write::Kind::atomic, std::string(key), std::string(operand), op});
  }
  void set_versionstamped_key(std::string_view key, std::string_view value) override {
    inner().set_versionstamped_key(key, value);
    wrote({Write::Kind::stamped_key, std::string(key), std::string(value)});
  }
  void set_versionstamped_value(std::string_view key, std::string_view value) override {
    inner().set_versionstamped_value(key, value);
    wrote({Write::Kind::stamped_value, std::string(key), std::string(value)});
  }

 protected:
  std::string do_commit() override;
  // The embedded store loses no responses.
  std::string new_commit_record_id() override {
    return engine_.embedded ? std::string() : store_.process().rng->bytes(12);
  }
  std::unique_ptr<kv::Transaction> begin_settling() override { return store_.begin(); }
  void do_reset() override {
    ForwardingTransaction::do_reset();
    written_ = {};
    note_beginning();
    watches_.clear();
  }

 private:
  void read() {
    maybe_stall();
    store_.step();
    if (happens(engine_.world.rng(), engine_.faults.too_old)) {
      engine_.world.count("fault: read too old");
      throw kv::Error(ErrorCode::transaction_too_old);
    }
  }
  // Called before a read, and so also between two reads.
  void maybe_stall() {
    World& world = engine_.world;
    if (!happens(world.rng(), engine_.faults.stall_read)) return;
    world.count("fault: stall at a read");
    world.freeze(store_.process(), between(world.rng(), {}, engine_.faults.longest_outage));
  }
  void crash() {
    engine_.world.crash(store_.process());
    store_.step();
  }
  [[noreturn]] void refuse(const char* what, ErrorCode code) {
    for (const auto& watch : watches_) watch->cancel();
    engine_.world.count(what);
    engine_.world.trace(what);
    throw kv::Error(code);
  }
  void wrote(Write write) { written_.writes.push_back(std::move(write)); }
  void commit_inner();
  void note_beginning() {
    written_.began = engine_.world.now();
    written_.began_ms = wall_ms();
  }
  std::int64_t wall_ms() const { return store_.process().clock->wall_ms(); }

  Store& store_;
  Engine& engine_;
  Written written_;
  std::vector<std::shared_ptr<kv::Watch>> watches_;
};

// Reports the commit to the observer.
void note_commit(Engine& engine, Written written, const kv::Transaction& tx, const Process& process) {
  engine.world.count("commits");
  written.version = tx.committed_version();
  written.stamp = tx.versionstamp();
  written.committed_ms = process.clock->wall_ms();
  if (engine.on_commit) engine.on_commit(written);
}

// Makes the commits that arrive late. Those of crashed processes are dropped, since their transactions use
// the clock and random numbers of their process.
void deliver_late_commits(Engine& engine) {
  for (auto& late : std::exchange(engine.late, {})) {
    if (late.process.incarnation != late.incarnation) continue;
    try {
      late.tx->commit();
    } catch (const kv::Error&) {
      engine.world.count("late commits refused");
      continue;
    }
    engine.world.count("late commits made");
    note_commit(engine, std::move(late.written), *late.tx, late.process);
  }
}

std::string FaultyTransaction::do_commit() {
  World& world = engine_.world;
  const Faults& faults = engine_.faults;
  if (inner().read_only()) {
    inner().commit();
    maybe_stall();
    store_.step();
    return {};
  }
  if (happens(world.rng(), faults.stall)) {
    world.count("fault: stall before a commit");
    world.freeze(store_.process(), between(world.rng(), {}, kv::kTransactionLifetime));
  }
  if (happens(world.rng(), faults.slow_commit)) {
    world.count("fault: slow commit");
    world.pause(between(world.rng(), {}, faults.slowest));
  }
  store_.step();
  if (happens(world.rng(), faults.crash_before)) {
    world.count("fault: crash before a commit");
    world.trace("crashes before a commit");
    crash();
  }
  if (happens(world.rng(), faults.conflict)) refuse("fault: conflict", ErrorCode::not_committed);
  if (happens(world.rng(), faults.too_old)) refuse("fault: commit too old", ErrorCode::transaction_too_old);
  if (happens(world.rng(), faults.unknown_undone)) {
    refuse("fault: unknown, not committed", ErrorCode::commit_unknown_result);
  }
  if (happens(world.rng(), faults.unknown_late)) {
    engine_.late.push_back({take_inner(engine_.begin(store_.process())), std::exchange(written_, {}),
                            store_.process(), store_.process().incarnation});
    refuse("fault: unknown, late", ErrorCode::commit_unknown_result);
  }
  if (!engine_.late.empty() && world.rng().below(2) == 0) deliver_late_commits(engine_);
  commit_inner();
  if (happens(world.rng(), faults.crash_after)) {
    world.count("fault: crash after a commit");
    world.trace("crashes after a commit");
    crash();
  }
  if (happens(world.rng(), faults.unknown_done)) {
    refuse("fault: unknown, committed", ErrorCode::commit_unknown_result);
  }
  store_.step();
  return inner().versionstamp();
}

// No other task runs during this call.
void FaultyTransaction::commit_inner() {
  World& world = engine_.world;
  EmbeddedStore* const embedded = engine_.embedded.get();
  kv::Version before = 0;
  if (embedded != nullptr) {
    before = engine_.database().begin()->read_version();
    // A commit appends to the log and syncs it: with 2 the power fails in the next commit.
    if (happens(world.rng(), engine_.faults.power_cut)) embedded->cut_power_after(world.rng().below(3));
  }
  try {
    inner().commit();
  } catch (const kv::Error& error) {
    if (error.code() == ErrorCode::not_committed) world.count("true conflicts");
    if (embedded != nullptr && embedded->is_cut()) {
      world.trace("the power fails during a commit");
      written_.committed_ms = wall_ms();
      written_.version = before + 1;
      written_.stamp = kv::versionstamp_bytes(before + 1, 0);
      engine_.interrupted = written_;
      crash();
    }
    throw;
  }
  note_commit(engine_, std::move(written_), inner(), store_.process());
}

}  // namespace

std::unique_ptr<kv::Transaction> Store::begin() {
  step();
  return std::make_unique<FaultyTransaction>(*this, engine_.begin(process_));
}

void Store::step() {
  World& world = engine_.world;
  Rng& rng = world.rng();
  const auto check = [&] {
    if (world.is_unwinding()) throw kv::Error(ErrorCode::transaction_cancelled);
  };
  Duration latency{};
  if (happens(rng, engine_.faults.slow)) {
    world.count("fault: slow operation");
    latency = between(rng, {}, engine_.faults.slowest);
  } else if (rng.below(2) == 0) {
    latency = between(rng, microseconds(50), milliseconds(4));
  }
  world.pause(latency);
  check();
  world.wait(nullptr, MonotonicTime::max(), [&] { return engine_.is_open; });
  check();
  while (process_.cut_off_until > world.now()) {
    world.count("waits for the store");
    world.wait(nullptr, process_.cut_off_until, [&] { return process_.cut_off_until <= world.now(); });
    check();
  }
}

}  // namespace divan::sim
