// Which nodes observe which workers.
//
// Nodes and workers have positions on a hash ring. The nodes that follow a worker on the ring are its closest
// observers. So each node closely observes its share of the workers, every node can compute who observes
// whom, and when a node comes or goes, only the shares of its neighbours change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "divan/workers/registry.h"

namespace divan::workers {

/// How many nodes observe a worker closely: more than one, since one may stop together with the worker.
inline constexpr std::size_t kClosestObservers = 2;

/// The nodes of a roster, which are the members of kNodeRole. A value type.
class Ring {
 public:
  Ring() = default;
  explicit Ring(const Registry::Roster& roster);

  bool has(std::string_view node) const { return positions_.contains(position(kNodeRole, node)); }

  /// Returns true if `node` is one of the kClosestObservers nodes that follow the worker. A node does not
  /// observe itself.
  bool observes(std::string_view node, std::string_view role, std::string_view id) const;

 private:
  static std::uint64_t position(std::string_view role, std::string_view id);

  std::map<std::uint64_t, std::string> positions_;
};

}  // namespace divan::workers
