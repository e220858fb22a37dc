// How busy this process is, as its heartbeat tells the others.
#pragma once

#include <string>

#include "divan/base/clock.h"

namespace divan::app {

/// What a process has used since it started, and what it uses at the moment.
struct NodeUse {
  double cpu_seconds = 0;         // of all its threads
  double javascript_seconds = 0;  // for which JavaScript processes worked, added up
  std::uint64_t requests = 0;
  std::size_t builds = 0;  // at the moment
  std::int64_t memory_bytes = 0;
};

/// Of this process: its processor time and resident memory, the rest as it is given.
NodeUse with_own_use(NodeUse use);

/// Not thread-safe. The clock must outlive it.
class NodeLoad {
 public:
  explicit NodeLoad(const Clock& clock) : clock_(clock), at_(clock.now()) {}

  /// A JSON object, whose rates are over the time since the last call. docs/cluster.md
  std::string report(const NodeUse& use);

 private:
  const Clock& clock_;
  MonotonicTime at_;
  NodeUse before_;
};

}  // namespace divan::app
