#include "divan/kv/embedded/group_batch.h"

#include <algorithm>

#include "divan/kv/embedded/snapshot.h"

namespace divan::kv::embedded {

// Returns true if the row was cleared after it was written.
bool GroupBatch::is_cleared(const Row& row) const {
  const auto later = std::ranges::upper_bound(cleared_, row.number, {}, &ClearedRange::rows);
  return std::any_of(later, cleared_.end(), [&](const ClearedRange& range) {
    return range.begin <= row.key && row.key < range.end;
  });
}

rocksdb::Status GroupBatch::append_to(rocksdb::WriteBatch& batch) {
  // Before all rows, since those that were cleared later are left out.
  for (const auto& [begin, end, rows] : cleared_) {
    if (auto status = batch.DeleteRange(slice(begin), slice(end)); !status.ok()) return status;
  }
  const auto precedes = [](const Row& a, const Row& b) {
    const auto keys = a.key <=> b.key;
    return keys != 0 ? keys < 0 : a.number < b.number;
  };
  if (!std::ranges::is_sorted(rows_, precedes)) std::ranges::sort(rows_, precedes);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (i + 1 < rows_.size() && rows_[i + 1].key == row.key) continue;
    if (is_cleared(row)) continue;
    auto status = row.exists ? batch.Put(slice(row.key), slice(row.value)) : batch.Delete(slice(row.key));
    if (!status.ok()) return status;
  }
  return rocksdb::Status::OK();
}

}  // namespace divan::kv::embedded
