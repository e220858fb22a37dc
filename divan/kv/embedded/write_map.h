// The writes of a transaction that is not committed yet: what it would see of its own, and what the commit is
// to do.
//
// Ranges that were cleared are kept apart from single keys. A key written after its range was cleared stands
// among the points and wins; clearing a range removes the points in it. So the commit can clear all ranges
// first and then write all points, whatever the order of the calls was. An atomic operation on a key whose
// value the transaction knows (it set or cleared it) is worked out at once; otherwise the operations wait in
// a list for the stored value.
#pragma once

#include <absl/container/btree_map.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/kv/store.h"

namespace divan::kv::embedded {

struct AtomicOperation {
  AtomicOp op;
  std::string operand;
};

/// What happens to one key.
struct PointWrite {
  enum class Kind {
    set,
    clear,
    atomic,         // `operations` on the stored value
    stamped_value,  // set, with the versionstamp to be put in at `stamp_offset`: unreadable before the commit
  };
  Kind kind = Kind::clear;
  std::string value;
  std::vector<AtomicOperation> operations;
  std::uint32_t stamp_offset = 0;
};

/// A key that the commit completes.
struct StampedKey {
  std::string key;
  std::uint32_t stamp_offset;
  std::string value;
};

/// See above. Not thread-safe.
class WriteMap {
 public:
  using Points = absl::btree_map<std::string, PointWrite, std::less<>>;
  using Ranges =
      absl::btree_map<std::string, std::string, std::less<>>;  // begin → end, disjoint and not touching

  void set(std::string_view key, std::string_view value);
  void clear(std::string_view key);
  void clear_range(std::string_view begin, std::string_view end);
  void atomic(AtomicOp op, std::string_view key, std::string_view operand);
  void set_stamped_value(std::string_view key, std::string_view value, std::uint32_t stamp_offset);
  void add_stamped_key(std::string_view key, std::uint32_t stamp_offset, std::string_view value);

  bool empty() const { return points_.empty() && ranges_.empty() && stamped_keys_.empty(); }
  /// Bytes of the keys and values, as they count towards the transaction's limit.
  std::size_t bytes() const { return bytes_; }

  /// Whether atomic operations wait for a stored value. May say so after they were overwritten.
  bool has_atomics() const { return has_atomics_; }

  const Points& points() const { return points_; }
  const Ranges& ranges() const { return ranges_; }
  const std::vector<StampedKey>& stamped_keys() const { return stamped_keys_; }

  /// The end of the cleared range that covers `key`, or nothing.
  const std::string* cleared_until(std::string_view key) const;
  /// The beginning of the cleared range that covers the keys just below `key`, or nothing.
  const std::string* cleared_from(std::string_view key) const;

 private:
  PointWrite& point(std::string_view key);

  Points points_;
  Ranges ranges_;
  std::vector<StampedKey> stamped_keys_;
  std::size_t bytes_ = 0;
  bool has_atomics_ = false;
};

/// The value that a point gives a key whose stored value is `stored`; nothing: the key is not there. Throws
/// accessed_unreadable for a stamped value.
std::optional<std::string> value_after(const PointWrite& point, const std::optional<std::string>& stored);

}  // namespace divan::kv::embedded
