// What is remembered of an index whose builds fail: how often, when, why. It stands beside the index's state,
// in the store, so that the pause before the next try grows whoever tries, and over restarts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "divan/index/index.h"

namespace divan::index {

/// Builds of an index that failed one after the other, without getting any further.
struct BuildFailures {
  std::int64_t count = 0;
  std::int64_t last_at = 0;  // milliseconds since 1970
  bool by_function = false;  // the last one failed because a function runs into its limits
  std::string error;         // of the last one

  /// When ken tries again, in milliseconds since 1970: after 5 s, then twice that and so on; up to an hour if
  /// a function is to blame, else up to a minute.
  std::int64_t retry_at() const;
};

/// Nothing if its last build did not fail.
std::optional<BuildFailures> read_failures(kv::Transaction& tx, const IndexKeys& keys,
                                           kv::Isolation isolation = kv::Isolation::snapshot);
void write_failures(kv::Transaction& tx, const IndexKeys& keys, const BuildFailures& failures);
void clear_failures(kv::Transaction& tx, const IndexKeys& keys);

}  // namespace divan::index
