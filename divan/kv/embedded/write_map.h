// The writes of a transaction that is not committed yet: for its own reads, and for the commit.
//
// Ranges that were cleared are kept apart from single keys. A key written after its range was cleared is one
// of the points, which take precedence; clearing a range removes the points in it. So the commit can clear
// all ranges first and then write all points, whatever the order of the calls was. An atomic operation on a
// key whose value the transaction knows (it set or cleared it) is applied at once; otherwise the operations
// wait in a list for the stored value.
//
// Versionstamped keys are kept apart from both, since only the commit determines them. It writes them last,
// and until then no key can be read that one of them may become.
#pragma once

#include <absl/container/btree_map.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/kv/range_set.h"
#include "divan/kv/store.h"

namespace divan::kv::embedded {

struct AtomicOperation {
  AtomicOp op;
  std::string operand;
};

/// The writes to one key.
struct PointWrite {
  enum class Kind {
    set,
    clear,
    atomic,         // `operations` on the stored value
    stamped_value,  // set, with the versionstamp to be put in at `stamp_offset`, then `operations`
  };
  Kind kind = Kind::clear;
  std::string value;
  std::vector<AtomicOperation> operations;
  std::uint32_t stamp_offset = 0;
  bool unreadable = false;  // a versionstamped value was set and not cleared since
};

/// A key that the commit completes.
struct StampedKey {
  std::string key;
  std::uint32_t stamp_offset;
  std::string value;
  KeyRange possible;              // what it may become
  std::vector<KeyRange> cleared;  // later in the transaction: the key is not written if it is in one of them
};

/// See above. Not thread-safe.
class WriteMap {
 public:
  using Points = absl::btree_map<std::string, PointWrite, std::less<>>;

  void set(std::string_view key, std::string_view value);
  void clear(std::string_view key);
  void clear_range(std::string_view begin, std::string_view end);
  void atomic(AtomicOp op, std::string_view key, std::string_view operand);
  void set_stamped_value(std::string_view key, std::string_view value, std::uint32_t stamp_offset);
  /// The key's stamp will be above those of `read_version`.
  void add_stamped_key(std::string_view key, std::uint32_t stamp_offset, std::string_view value,
                       Version read_version);

  bool empty() const { return points_.empty() && cleared_.empty() && stamped_keys_.empty(); }
  /// Bytes of the keys and values, as they count towards the transaction's limit.
  std::size_t bytes() const { return bytes_; }

  /// Returns true if atomic operations wait for a stored value; also if they were overwritten since.
  bool has_atomics() const { return has_atomics_; }

  const Points& points() const { return points_; }
  /// Changes when iterators of points() become invalid.
  std::uint64_t changes() const { return changes_; }
  const RangeSet& cleared() const { return cleared_; }
  bool is_cleared(std::string_view key) const { return cleared_.covering(key) != cleared_.end(); }
  const std::vector<StampedKey>& stamped_keys() const { return stamped_keys_; }
  /// The keys that the stamped keys may become, without those that were cleared since. They cannot be read
  /// before the commit.
  const RangeSet& unreadable() const { return unreadable_; }

 private:
  PointWrite& point(std::string_view key);
  PointWrite& add_point(Points::iterator next, std::string_view key, PointWrite write);
  void clear_stamped_keys(std::string_view begin, std::string_view end);

  Points points_;
  std::uint64_t changes_ = 0;
  RangeSet cleared_;
  RangeSet unreadable_;
  std::vector<StampedKey> stamped_keys_;
  std::size_t bytes_ = 0;
  bool has_atomics_ = false;
};

/// The value that a point gives a key whose stored value is `stored`; nullopt if the key does not exist.
/// Throws accessed_unreadable if the point is unreadable.
std::optional<std::string> value_after(const PointWrite& point, const std::optional<std::string>& stored);

}  // namespace divan::kv::embedded
