// How modules check their rows in a store, for `divan verify`.
//
// All rows of the store are read once, in the order of their keys. A module's check examines its own rows and
// keeps only counts and sums, whatever the number of rows. Rows that must agree lie far apart, so checks
// compare sums: of a digest of each row that must exist, and of each that exists. Only if the sums differ, a
// check reads the rows again to name those that are wrong.
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

/// Messages about damage. Keeps the first ones and counts all. Not thread-safe.
class Findings {
 public:
  static constexpr std::size_t kMaxKept = 100;

  void add(std::string_view text) {
    if (kept_.size() < kMaxKept) kept_.push_back(readable(text));
    ++count_;
  }
  /// Adds the message with the row's key in a readable form.
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

  /// Receives the next row of the store. Returns true if it belongs to the module.
  virtual bool row(std::string_view key, std::string_view value) = 0;

  /// Called after the last row; `rows` reads the same rows again.
  virtual void finish(RowSource& rows) = 0;
};

/// Returns true if the bytes are a packed tuple of these elements: s text, b bytes, i an integer of 64 bits,
/// t a boolean, v a versionstamp. "si" is a text and an integer.
bool has_shape(std::string_view packed, std::string_view shape);

/// A value in chunks (chunks.h) that is put together from its rows. Not thread-safe.
class ChunkedValue {
 public:
  /// `id` is the part that its chunks' keys have in common.
  explicit ChunkedValue(std::string id) : id_(std::move(id)) {}

  /// The next chunk; false if the one before it is missing or not full.
  bool add(std::int64_t number, std::string_view piece);

  const std::string& id() const { return id_; }
  std::int64_t chunks() const { return chunks_; }
  std::size_t bytes() const { return bytes_; }
  /// The value; nullopt if chunks are missing or it is larger than any value may be.
  std::optional<std::string_view> text() const;

 private:
  std::string id_;
  std::int64_t chunks_ = 0;
  std::size_t last_bytes_ = kChunkBytes;
  std::size_t bytes_ = 0;
  std::string text_;
  bool whole_ = true;
};

/// A sum over a set of rows that does not depend on their order. Different sets almost never have equal sums.
class RowSum {
 public:
  void add(std::string_view row, std::uint64_t times = 1) {
    sum_ += std::hash<std::string_view>()(row) * times;
    count_ += times;
  }
  std::uint64_t count() const { return count_; }
  bool operator==(const RowSum&) const = default;

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

/// Returns true if the versionstamp is later than all that a store at this version has assigned.
bool is_beyond(const Versionstamp& stamp, Version version);

}  // namespace divan::kv
