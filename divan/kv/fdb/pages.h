// A range, page by page, with the next page on its way while one is looked at.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "divan/kv/fdb/cluster.h"

namespace divan::kv::fdb {

/// The rows from `begin` to `end`, as a snapshot, as keys stand in the cluster. Not thread-safe; must not
/// outlive the transaction.
class Pages {
 public:
  /// How much is wanted at most; 0: all, or who knows how much.
  struct Wanted {
    std::size_t rows = 0;
    std::size_t bytes = 0;
    bool reverse = false;
  };
  Pages(RawTransaction& tx, std::string begin, std::string end, const Wanted& wanted);

  /// The next rows, valid until the next call; none at the end. 0 or what went wrong.
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
