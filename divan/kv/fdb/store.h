// What the transactions of one store share, and where its rows stand in the cluster.
#pragma once

#include <optional>
#include <string>

#include "divan/base/rng.h"
#include "divan/kv/fdb/cluster.h"
#include "divan/kv/fdb/watches.h"

namespace divan::kv::fdb {

/// Where rows stand: each key behind a prefix that is Divan's. What the engine keeps for itself stands behind
/// the prefix and a byte 0xff, where no transaction can reach. Immutable, hence thread-safe.
class Place {
 public:
  /// The prefix is the tuple (`name`).
  explicit Place(std::string_view name);

  std::string in_cluster(std::string_view key) const { return std::string(prefix_).append(key); }
  std::size_t prefix_bytes() const { return prefix_.size(); }

  std::string begin() const { return prefix_; }
  std::string end() const { return prefix_ + '\xff'; }

  std::string format_key() const;
  /// Where the dumps of a store show that it is alive.
  std::string dump_key() const;
  /// Behind all rows and what the engine keeps.
  std::string very_end() const { return prefix_ + "\xff\xff"; }

 private:
  std::string own_key(std::string_view name) const;

  const std::string prefix_;
};

/// Thread-safe.
struct Store {
  const Cluster cluster;
  const Place place;
  const std::string tag;  // of transactions; empty: none
  Rng& rng;
  Watches watches;
};

}  // namespace divan::kv::fdb
