// The state that all transactions of a store share, and the subspace of its rows in the cluster.
#pragma once

#include <optional>
#include <string>

#include "divan/base/rng.h"
#include "divan/kv/fdb/cluster.h"
#include "divan/kv/fdb/watches.h"

namespace divan::kv::fdb {

/// The keys of a store's rows: each follows a prefix. The engine's own rows follow the prefix and a byte
/// 0xff, where callers of a transaction cannot reach. Immutable, hence thread-safe.
class Subspace {
 public:
  /// The prefix is the tuple (`name`).
  explicit Subspace(std::string_view name);

  std::string in_cluster(std::string_view key) const { return std::string(prefix_).append(key); }
  std::size_t prefix_bytes() const { return prefix_.size(); }

  std::string begin() const { return prefix_; }
  std::string end() const { return prefix_ + '\xff'; }

  std::string format_key() const;
  /// A key without a row, which dumps add as a write conflict so that their commits have a version.
  std::string dump_key() const;
  /// The end of all rows, including the engine's own.
  std::string very_end() const { return prefix_ + "\xff\xff"; }

 private:
  std::string own_key(std::string_view name) const;

  const std::string prefix_;
};

/// Thread-safe.
struct Store {
  const Cluster cluster;
  const Subspace subspace;
  const std::string tag;  // of transactions; empty: none
  Rng& rng;
  Watches watches;
};

}  // namespace divan::kv::fdb
