// Reads a range page by page, and requests the next page while one is processed.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "divan/kv/fdb/cluster.h"

namespace divan::kv::fdb {

/// The rows from `begin` to `end`, as a snapshot, with the cluster's keys. Not thread-safe; must not outlive
/// the transaction.
class Pages {
 public:
  /// The most that is needed; 0: all, or not known.
  struct Wanted {
    std::size_t rows = 0;
    std::size_t bytes = 0;
    bool reverse = false;
  };
  Pages(RawTransaction& tx, std::string begin, std::string end, const Wanted& wanted);

  /// Sets `rows` to the next rows, which are valid until the next call; none at the end. Returns 0 or the
  /// error.
  FdbError next(std::span<const FdbKeyValue>& rows);

 private:
  Future request();

  RawTransaction& tx_;
  std::string begin_;
  std::string end_;
  const Wanted wanted_;
  std::size_t rows_left_;
  int iteration_ = 0;
  bool more_ = true;
  std::optional<Future> page_;  // the one that is shown
  std::optional<Future> ahead_;
};

}  // namespace divan::kv::fdb
