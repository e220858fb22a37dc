#include "divan/kv/embedded/snapshot.h"

#include "divan/base/check.h"
#include "divan/kv/embedded/key_prefix.h"

namespace divan::kv::embedded {

void check_status(const rocksdb::Status& status) {
  if (!status.ok()) throw Error(ErrorCode::io_error, status.ToString());
}

std::optional<std::string> Snapshot::get(std::string_view key) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  rocksdb::PinnableSlice value;
  const auto status = db_.Get(options, db_.DefaultColumnFamily(), slice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  check_status(status);
  return value.ToString();
}

std::vector<std::optional<std::string>> Snapshot::get_many(std::span<const std::string> keys) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db_.MultiGet(options, db_.DefaultColumnFamily(), keys.size(), slices.data(), values.data(),
               statuses.data());
  std::vector<std::optional<std::string>> found(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].IsNotFound()) continue;
    check_status(statuses[i]);
    found[i] = values[i].ToString();
  }
  return found;
}

std::unique_ptr<rocksdb::Iterator> Snapshot::iterate(const rocksdb::Slice* lower, const rocksdb::Slice* upper,
                                                     bool reverse) const {
  DIVAN_CHECK(lower != nullptr && upper != nullptr, "rows are read without bounds");
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  options.iterate_lower_bound = lower;
  options.iterate_upper_bound = upper;
  // Backwards RocksDB would use the prefix of `upper`, which has none.
  options.prefix_same_as_start = !reverse && share_filter_prefix(view(*lower), view(*upper));
  options.total_order_seek = !options.prefix_same_as_start;
  return std::unique_ptr<rocksdb::Iterator>(db_.NewIterator(options));
}

}  // namespace divan::kv::embedded
