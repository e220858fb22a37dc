// Observes the engine's commits, without the simulated faults, and passes their changes to the invariants.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "divan/kv/tuple_packer.h"
#include "sim/store.h"

namespace divan::sim {

/// The change of a row; nullopt: it does not exist.
struct Change {
  std::string key;
  std::optional<std::string> before;
  std::optional<std::string> after;
};

/// A commit as the invariants see it.
struct Commit {
  std::vector<Change> changes;  // by key
  std::string stamp;            // ten bytes
  kv::Version version = 0;
  // By the wall clock of the process that committed, as in Written. What it has read from its clock lies
  // between these.
  std::int64_t began_ms = 0;
  std::int64_t committed_ms = 0;
  MonotonicTime began{};  // in true time

  const Change* find(std::string_view key) const;
};

/// The rows of the store as the last commit left them.
using Rows = std::map<std::string, std::string, std::less<>>;

/// The key prefix of the records of a kind that clients write beside their changes, for the invariants.
std::string note_prefix(std::string_view kind);

/// Calls `fn` for each record of `kind` that `commit` has written, with a reader of its key after
/// note_prefix(). Fails if the store had the record already: then its transaction was committed twice.
void for_each_note(World& world, const Commit& commit, std::string_view kind,
                   const std::function<void(kv::tuple::Reader&)>& fn);

/// What must hold after each commit.
class Invariant {
 public:
  virtual ~Invariant() = default;
  /// Called after each commit, with the rows after it. Calls World::fail() with what does not hold.
  virtual void check(const Commit& commit, const Rows& rows) = 0;
};

/// Keeps a copy of the rows, made from the writes of each commit, compares it with the engine, and checks the
/// invariants.
class Observer {
 public:
  explicit Observer(Engine& engine);

  void add(Invariant& invariant) { invariants_.push_back(&invariant); }
  const Rows& rows() const { return rows_; }

  /// Compares the copy with the engine.
  void check_copy();

  /// For a restart of the store: fails unless it has what was committed, and all or nothing of the commit
  /// during which the power failed.
  void check_restarted();

 private:
  // The rows that the commit has written, by the meaning of its operations.
  using Outcome = std::map<std::string, std::optional<std::string>, std::less<>>;
  Outcome outcome_of(const Written& written) const;
  void committed(const Written& written);
  bool equals_engine() const;

  Engine& engine_;
  Rows rows_;
  std::vector<Invariant*> invariants_;
};

}  // namespace divan::sim
