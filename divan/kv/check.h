// How modules check the rows that they have in a store: what `divan verify` is made of.
//
// All rows of the store go by once, in the order of their keys. A module's check takes those that are its
// own, looks at each, and keeps no more of them than counts and sums, whatever their number. Rows that belong
// together lie far apart, so their agreement is checked by sums: of a digest of each row that there must be,
// on one side, and of each that there is, on the other. Only where sums differ a check reads again, to say
// which rows it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "divan/kv/chunks.h"
#include "divan/kv/store.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::kv {

/// Text that may come from damaged rows, as UTF-8 without control characters, for people.
std::string readable(std::string_view text);

/// What is wrong, in words. Keeps the first ones, and counts all. Not thread-safe.
class Findings {
 public:
  static constexpr std::size_t kMaxKept = 100;

  void add(std::string_view text) {
    if (kept_.size() < kMaxKept) kept_.push_back(readable(text));
    ++count_;
  }
  /// With the row's key, for people.
  void add(std::string_view what, std::string_view key);
  void add(const Findings& more);

  const std::vector<std::string>& kept() const { return kept_; }
  std::size_t count() const { return count_; }

 private:
  std::vector<std::string> kept_;
  std::size_t count_ = 0;
};

/// The rows of a store as of one version.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Visits the rows of a range in order. Throws io_error.
  virtual void scan(const KeyRange& range, const RowVisitor& visit) = 0;

  std::optional<std::string> get(std::string_view key);
};

/// The check of a module's rows. Not thread-safe.
class RowCheck {
 public:
  virtual ~RowCheck() = default;

  /// The next row of the store. Answers whether it is one of the module's.
  virtual bool row(std::string_view key, std::string_view value) = 0;

  /// All rows have gone by; `rows` are the same once more.
  virtual void finish(RowSource& rows) = 0;
};

/// Whether bytes are a packed tuple of these elements: s text, b bytes, i an integer of 64 bits, t a truth
/// value, v a versionstamp. "si" is a text and an integer.
bool has_shape(std::string_view packed, std::string_view shape);

/// A value in chunks (chunks.h) whose rows go by. Not thread-safe.
class ChunkedValue {
 public:
  /// `place` is what its chunks' keys have in common.
  explicit ChunkedValue(std::string place) : place_(std::move(place)) {}

  /// The next chunk; false if the one before it is missing or not full.
  bool add(std::int64_t number, std::string_view piece);

  const std::string& place() const { return place_; }
  std::int64_t chunks() const { return chunks_; }
  std::size_t bytes() const { return bytes_; }
  /// All of it; nothing if chunks are missing, or if it is larger than anything that there may be.
  std::optional<std::string_view> text() const;

 private:
  std::string place_;
  std::int64_t chunks_ = 0;
  std::size_t last_bytes_ = kChunkBytes;
  std::size_t bytes_ = 0;
  std::string text_;
  bool whole_ = true;
};

/// A sum over a set of rows, in whatever order they come: equal for equal sets, and else hardly ever.
class RowSum {
 public:
  void add(std::string_view row) {
    sum_ += std::hash<std::string_view>()(row);
    ++count_;
  }
  std::uint64_t count() const { return count_; }
  bool operator==(const RowSum&) const = default;

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

/// Whether a versionstamp is later than all that a store of this version has given.
bool is_beyond(const Versionstamp& stamp, Version version);

}  // namespace divan::kv
