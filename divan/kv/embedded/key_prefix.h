// The part of a key that names an object.
//
// Most keys are packed tuples (divan/kv/tuple.h). The first elements say which database or queue a key
// belongs to and which part of it, the next one often names an object: a document, a job. With a filter of
// such prefixes RocksDB knows without reading a file that a document has no rows, which makes writing new
// documents cheap. RocksDB keeps the filter; it needs to know where the prefix ends.
//
// Keys that are not packed like that have no prefix and lose nothing.
#pragma once

#include <rocksdb/slice_transform.h>

#include <memory>
#include <string_view>

namespace divan::kv::embedded {

/// The key up to the end of its fourth element if that is a string; otherwise empty.
std::string_view filter_prefix(std::string_view key);

/// Returns true if all keys in [lower, upper) have the filter prefix of `lower`.
bool share_filter_prefix(std::string_view lower, std::string_view upper);

/// filter_prefix() for RocksDB. Files store its name: a function with other results needs another name.
std::shared_ptr<const rocksdb::SliceTransform> filter_prefixes();

}  // namespace divan::kv::embedded
