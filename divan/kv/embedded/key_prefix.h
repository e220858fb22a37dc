// Which part of a key RocksDB is to keep together.
//
// Most keys are packed tuples (divan/kv/tuple.h). The first elements say which database or queue a key
// belongs to and which part of it, the next one often names a thing: a document, a job. RocksDB can use both,
// as long as it is told where an element ends:
//
// - Keys with the same first elements are often written in order (sequences grow, a transaction's keys are
//   sorted), so where the last one of the same beginning went is a good place to start looking for the next
//   one's place. That is the insert prefix.
// - A filter over the beginnings that name a thing answers that there are no rows of a document without a
//   look at any file. That is the filter prefix; it makes writing new documents cheap.
//
// Keys that are not packed like that have no prefix and lose nothing.
#pragma once

#include <rocksdb/slice_transform.h>

#include <memory>
#include <string_view>

namespace divan::kv::embedded {

/// The key up to the end of its third element; empty if it has fewer.
std::string_view insert_prefix(std::string_view key);

/// The key up to the end of its fourth element if that is a string; otherwise empty.
std::string_view filter_prefix(std::string_view key);

/// Whether all keys in [lower, upper) have the filter prefix that `lower` has.
bool share_filter_prefix(std::string_view lower, std::string_view upper);

/// The same for RocksDB.
std::shared_ptr<const rocksdb::SliceTransform> insert_prefixes();
std::shared_ptr<const rocksdb::SliceTransform> filter_prefixes();

}  // namespace divan::kv::embedded
