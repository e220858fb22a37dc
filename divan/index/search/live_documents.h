// Which document numbers of a full-text index are live: those of the last versions of its documents.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/search/rows.h"

namespace divan::index::search {

/// The number of document numbers that a row covers.
inline constexpr std::uint64_t kLiveDocumentsOfARow = 4'096;

/// A set of numbers below kLiveDocumentsOfARow. A value type.
class NumberSet {
 public:
  NumberSet() : words_(kLiveDocumentsOfARow / 64) {}
  bool contains(std::uint64_t number) const { return (words_[number / 64] >> (number % 64) & 1) != 0; }
  void insert(std::uint64_t number) { words_[number / 64] |= std::uint64_t{1} << (number % 64); }
  void erase(std::uint64_t number) { words_[number / 64] &= ~(std::uint64_t{1} << (number % 64)); }
  std::vector<std::uint64_t> numbers() const;
  bool empty() const;

  std::string encode() const;
  /// Throws an internal error if the bytes are damaged.
  static NumberSet decode(std::string_view value);

 private:
  std::vector<std::uint64_t> words_;
};

/// The rows of live documents that one transaction reads. Not thread-safe.
class LiveDocuments {
 public:
  LiveDocuments(kv::Transaction& tx, const SearchKeys& keys) : tx_(tx), keys_(keys) {}

  /// Reads the rows of these numbers together.
  void read(std::span<const DocumentNumber> numbers);
  /// Reads the row if it was not read.
  bool contains(DocumentNumber number);
  /// All of them, in order.
  std::vector<DocumentNumber> all();

  /// The row of a number, to be changed.
  NumberSet& row(DocumentNumber number);
  const std::map<std::uint64_t, NumberSet>& rows() const { return rows_; }

 private:
  kv::Transaction& tx_;
  const SearchKeys& keys_;
  std::map<std::uint64_t, NumberSet> rows_;
  std::uint64_t last_row_ = 0;
  const NumberSet* last_ = nullptr;
};

}  // namespace divan::index::search
