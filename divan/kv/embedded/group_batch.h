// The writes of a group of commits, as one batch for RocksDB.
//
// Nobody can read a version between the commits of a group, so of the writes to one key only the last one is
// needed: counters and marks that each commit of a group writes take one row a group. The rows are sorted,
// because neighbours are inserted quickly (entry_list.h).
#pragma once

#include <rocksdb/write_batch.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace divan::kv::embedded {

/// Collects writes in their order. Not thread-safe. The strings that it is given must outlive it, except
/// those given to keep().
class GroupBatch {
 public:
  void set(std::string_view key, std::string_view value) {
    rows_.push_back({key, value, true, rows_.size()});
  }
  void clear(std::string_view key) { rows_.push_back({key, {}, false, rows_.size()}); }
  void clear_range(std::string_view begin, std::string_view end) {
    cleared_.push_back({begin, end, rows_.size()});
  }

  /// Keeps a string for as long as this object exists.
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  /// Adds the writes to `batch`. Call once.
  rocksdb::Status append_to(rocksdb::WriteBatch& batch);

 private:
  struct Row {
    std::string_view key;
    std::string_view value;
    bool exists;
    std::size_t number;
  };
  struct ClearedRange {
    std::string_view begin;
    std::string_view end;
    std::size_t rows;  // written before
  };
  bool is_cleared(const Row& row) const;

  std::vector<Row> rows_;
  std::vector<ClearedRange> cleared_;
  std::deque<std::string> kept_;
};

}  // namespace divan::kv::embedded
