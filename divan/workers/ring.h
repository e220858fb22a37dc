// Which nodes observe which workers.
//
// Nodes and workers have places on a ring, by a hash of their names. The nodes that come next after a worker
// are its closest observers. So with N nodes each observes its share of the workers closely, every node knows
// without asking who observes whom, and when a node comes or goes only its neighbours' shares change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "divan/workers/registry.h"

namespace divan::workers {

/// How many nodes observe a worker closely: one of them may stop at the same time as the worker.
inline constexpr std::size_t kClosestObservers = 2;

/// The nodes of a roster, which are the members of kNodeRole. A value type.
class Ring {
 public:
  Ring() = default;
  explicit Ring(const Registry::Roster& roster);

  bool has(std::string_view node) const { return places_.contains(place(kNodeRole, node)); }

  /// Whether `node` is one of the first kClosestObservers nodes after the worker. A node is none of its own.
  bool observes(std::string_view node, std::string_view role, std::string_view id) const;

 private:
  static std::uint64_t place(std::string_view role, std::string_view id);

  std::map<std::uint64_t, std::string> places_;
};

}  // namespace divan::workers
