// A subspace: the part of the store below one key prefix. A layer keeps its data in a subspace and never
// looks outside, so that layers cannot tread on each other's keys.
#pragma once

#include <string>
#include <string_view>

#include "divan/kv/tuple.h"

namespace divan::kv {

/// A key prefix, and tuples below it. Immutable, hence thread-safe.
class Subspace {
 public:
  /// The prefix is `prefix`, as it is.
  explicit Subspace(std::string prefix = {}) : prefix_(std::move(prefix)) {}
  /// The prefix is the packed tuple.
  explicit Subspace(const tuple::Tuple& tuple) : prefix_(tuple::pack(tuple)) {}

  const std::string& prefix() const { return prefix_; }

  /// The subspace below `tuple` in this one.
  Subspace sub(const tuple::Tuple& tuple) const { return Subspace(pack(tuple)); }

  std::string pack(const tuple::Tuple& tuple) const;
  /// See tuple::pack_with_versionstamp().
  std::string pack_with_versionstamp(const tuple::Tuple& tuple) const;
  /// Throws Error 500 "corrupt_key" if `key` is not in this subspace or what follows the prefix is no tuple.
  tuple::Tuple unpack(std::string_view key) const;

  bool contains(std::string_view key) const { return key.starts_with(prefix_); }

  /// All keys of this subspace that are tuples, but for the prefix itself.
  KeyRange range() const { return {prefix_ + '\0', prefix_ + '\xff'}; }
  /// All keys of this subspace that begin with `tuple` and are longer.
  KeyRange range(const tuple::Tuple& tuple) const { return sub(tuple).range(); }

  /// The fast path: `key` becomes the prefix, and what is packed is appended to it.
  tuple::Packer packer(std::string& key) const;
  /// The fast path back, positioned after the prefix. Throws as unpack() does for a key from elsewhere.
  tuple::Reader reader(std::string_view key) const;

 private:
  std::string prefix_;
};

}  // namespace divan::kv
