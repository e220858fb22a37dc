// The failures of an index's builds: how often, when, why. They are stored beside the index's state, so that
// the pause before the next attempt grows across processes and restarts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "divan/index/index.h"

namespace divan::index {

/// Consecutive failures of an index's builds without progress.
struct BuildFailures {
  std::int64_t count = 0;
  std::int64_t last_at = 0;  // milliseconds since 1970
  bool by_function = false;  // the last one failed because a function exceeded its limits
  std::string error;         // of the last one

  /// The time at which ken retries, in milliseconds since 1970: after a pause of 5 s that doubles with each
  /// failure, up to an hour if a function exceeded its limits, otherwise up to a minute.
  std::int64_t retry_at() const;
};

/// Returns nullopt if the index's last build did not fail.
std::optional<BuildFailures> read_failures(kv::Transaction& tx, const IndexKeys& keys,
                                           kv::Isolation isolation = kv::Isolation::snapshot);
void write_failures(kv::Transaction& tx, const IndexKeys& keys, const BuildFailures& failures);
void clear_failures(kv::Transaction& tx, const IndexKeys& keys);

}  // namespace divan::index
