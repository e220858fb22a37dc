#include "divan/kv/embedded/snapshot.h"

#include "divan/base/check.h"
#include "divan/kv/embedded/key_prefix.h"

namespace divan::kv::embedded {

void check_status(const rocksdb::Status& status) {
  if (status.IsIncomplete()) throw Error(ErrorCode::would_block);
  if (!status.ok()) throw Error(ErrorCode::io_error, status.ToString());
}

rocksdb::ReadOptions Snapshot::read_options(Reads reads) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  if (reads == Reads::from_memory) options.read_tier = rocksdb::kBlockCacheTier;
  options.fill_cache = reads != Reads::once;
  return options;
}

std::optional<std::string> Snapshot::get(std::string_view key, Reads reads) const {
  const rocksdb::ReadOptions options = read_options(reads);
  rocksdb::PinnableSlice value;
  const auto status = db_.Get(options, db_.DefaultColumnFamily(), slice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  check_status(status);
  return value.ToString();
}

std::vector<std::optional<std::string>> Snapshot::get_many(std::span<const std::string> keys,
                                                           Reads reads) const {
  std::vector<std::optional<std::string>> found(keys.size());
  if (reads == Reads::from_memory) {
    // MultiGet() reads from the disk whatever the options say (RocksDB 7.8).
    for (std::size_t i = 0; i < keys.size(); ++i) found[i] = get(keys[i], reads);
    return found;
  }
  const rocksdb::ReadOptions options = read_options(reads);
  std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db_.MultiGet(options, db_.DefaultColumnFamily(), keys.size(), slices.data(), values.data(),
               statuses.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].IsNotFound()) continue;
    check_status(statuses[i]);
    found[i] = values[i].ToString();
  }
  return found;
}

std::unique_ptr<rocksdb::Iterator> Snapshot::iterate(const rocksdb::Slice* lower, const rocksdb::Slice* upper,
                                                     bool reverse, Reads reads) const {
  DIVAN_CHECK(lower != nullptr && upper != nullptr, "rows are read without bounds");
  rocksdb::ReadOptions options = read_options(reads);
  options.iterate_lower_bound = lower;
  options.iterate_upper_bound = upper;
  // Backwards RocksDB would use the prefix of `upper`, which has none.
  options.prefix_same_as_start = !reverse && share_filter_prefix(view(*lower), view(*upper));
  options.total_order_seek = !options.prefix_same_as_start;
  return std::unique_ptr<rocksdb::Iterator>(db_.NewIterator(options));
}

std::unique_ptr<rocksdb::Iterator> Snapshot::iterate_prefixes(Reads reads) const {
  rocksdb::ReadOptions options = read_options(reads);
  options.prefix_same_as_start = true;
  return std::unique_ptr<rocksdb::Iterator>(db_.NewIterator(options));
}

}  // namespace divan::kv::embedded
