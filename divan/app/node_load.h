// The load of this process, which its heartbeat reports to the other nodes.
#pragma once

#include <string>

#include "divan/api/context.h"
#include "divan/base/clock.h"

namespace divan::app {

/// What a process has used since it started, and its current use.
struct NodeUse {
  double cpu_seconds = 0;         // of all threads
  double javascript_seconds = 0;  // time during which JavaScript processes were busy, in total
  std::uint64_t requests = 0;
  std::size_t builds = 0;  // current
  std::int64_t memory_bytes = 0;
  api::DiskSpace disk;
};

/// Reads the space of the file system that has this directory.
api::DiskSpace disk_space(const std::string& directory);

/// Adds the CPU time and resident memory of this process to `use`.
NodeUse with_process_use(NodeUse use);

/// What this process has used in its `uptime`, for `/_node/{name}/_system`.
api::NodeUse node_use(Duration uptime, const std::string& data_dir);

/// Computes rates from successive values. Not thread-safe. The clock must outlive it.
class NodeLoad {
 public:
  explicit NodeLoad(const Clock& clock) : clock_(clock), at_(clock.now()) {}

  /// Returns a JSON object with rates over the time since the last call. docs/cluster.md
  std::string report(const NodeUse& use);

 private:
  const Clock& clock_;
  MonotonicTime at_;
  NodeUse before_;
};

}  // namespace divan::app
