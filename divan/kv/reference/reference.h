// An engine that is slow and obviously right: what the contract of divan/kv/store.h means, as a program.
//
// A map keeps all values that a key had, until it is cleared for all transactions. A transaction keeps the
// list of its writes as they were made; what it reads is the map at its version with that list replayed. A
// commit is compared with every later one, range by range. Nothing is written to a disk, there are no
// threads, and the same calls give the same results: the model check compares the other engines with it, and
// the simulation runs on it.
#pragma once

#include <memory>

#include "divan/base/rng.h"
#include "divan/kv/reference/options.h"
#include "divan/kv/store.h"

namespace divan::kv::reference {

struct State;

/// Thread-safe. Transactions must not outlive it. The clock and rng must outlive it.
class ReferenceDatabase final : public Database {
 public:
  ReferenceDatabase(const Clock& clock, Rng& rng, const Options& options = {});
  ~ReferenceDatabase() override;

  std::unique_ptr<Transaction> begin() override;
  Version dump(const RowVisitor& visit) override;
  std::int64_t estimate_bytes(const KeyRange& range) override;
  void advance_version(Version at_least) override;

  /// Another process's view of the same store: with its own clock and rng.
  std::unique_ptr<Transaction> begin(const Clock& clock, Rng& rng);

  /// Of the last commit.
  Version version() const;

 private:
  const Clock& clock_;
  Rng& rng_;
  std::unique_ptr<State> state_;
};

}  // namespace divan::kv::reference
