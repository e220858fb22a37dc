// How a full-text index is stored: the keys of its rows, and their values. docs/keyspace.md
//
// A document has another number each time it is indexed, larger than all before. Most rows have, for one
// field and perhaps one term, entries of several documents in the order of their numbers: a batch of
// documents writes one row for each of its terms. Such a batch is a segment; rows of small segments are
// merged into those of larger ones (merger.h), so that a term does not have many. Entries of documents that
// were changed or deleted meanwhile remain until then; readers ignore numbers that are not live
// (live_documents.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/index.h"

namespace divan::index::search {

/// The number of a document in an index: the first is 1.
using DocumentNumber = std::uint64_t;

/// What a row has entries of.
enum class Column : int {
  terms = 0,    ///< where a term occurs
  numbers = 1,  ///< the numbers of a field
  strings = 2,  ///< the strings of a field
  facets = 3,   ///< those that are counted
};

/// The parts of the keys of an index (IndexKeys::part()). Those below 10 are of other kinds of index.
enum class Part : int {
  state = 10,      // () = IndexState
  live = 11,       // (number / kLiveDocumentsOfARow) = which numbers are documents
  entries = 12,    // (level, column, field, [term,] first number) = entries
  documents = 13,  // (number, chunk) = a chunk of a StoredDocument
  numbers = 14,    // (id) = (number)
  lengths = 15,    // (field, 0 | 1) = counters: documents with the field, and their terms in it
};

/// Limits. What exceeds them is left out of the index, with a record (left_out.h); but of a longer string
/// only the beginning is compared.
inline constexpr std::size_t kMaxFieldBytes = 500;   ///< of a field's name
inline constexpr std::size_t kMaxTermBytes = 4'000;  ///< of a term
inline constexpr std::size_t kMaxNumbers = 8'000;    ///< of a field of a document
inline constexpr std::size_t kMaxValues = 200;       ///< strings or facets of a field of a document
inline constexpr std::size_t kMaxStringBytes = 256;  ///< of a string to sort by, or a facet
inline constexpr std::size_t kMaxFieldsBytes =
    1'000'000;                                        ///< of the names of a document's fields, and 50 each
inline constexpr std::size_t kMaxPositions = 20'000;  ///< of a term in a field of a document
/// A row is full when its entries take this many bytes.
inline constexpr std::size_t kFullRowBytes = 16'000;

/// The keys of an index. Immutable, hence thread-safe.
class SearchKeys {
 public:
  explicit SearchKeys(const IndexKeys& keys) : keys_(keys) {}

  std::string part(Part part) const { return keys_.part(static_cast<int>(part)); }
  std::string level(int level) const;
  /// The prefix of the keys of a level, of the rows of a field, and of the rows of a term.
  std::string rows(int level, Column column, std::string_view field) const;
  std::string row_begin(int level, std::string_view field, std::string_view term) const;
  std::string document(DocumentNumber number) const;
  std::string document(DocumentNumber number, std::uint32_t chunk) const;
  std::string live(std::uint64_t row) const;
  std::string number(std::string_view id) const;
  std::string documents_of_field(std::string_view field) const;
  std::string terms_of_field(std::string_view field) const;
  std::string state() const { return part(Part::state); }

 private:
  const IndexKeys keys_;
};

/// The key of a row without its level: what rows have in common that are merged, and the first number.
struct RowKey {
  std::string suffix;  ///< packed: column, field and, of terms, the term
  DocumentNumber first = 0;
};
/// Throws an internal error if it is damaged. `rest` is the key after the level.
RowKey parse_row_key(std::string_view rest);
std::string row_suffix(Column column, std::string_view field, std::string_view term);

/// One entry of a row.
struct Entry {
  DocumentNumber number = 0;
  std::string_view payload;
};

/// Where a term occurs in a field of a document.
struct Occurrences {
  std::uint32_t frequency = 0;
  std::uint32_t length = 0;  ///< terms in the field
  float boost = 1;
  std::string_view positions;  ///< encoded
};

/// Reads the entries of a row. Throws an internal error if the row is damaged. Not thread-safe.
class EntryReader {
 public:
  EntryReader(Column column, DocumentNumber first, std::string_view value)
      : column_(column), number_(first), rest_(value) {}
  /// Returns false at the end.
  bool next(Entry& entry);
  /// Like next(), of Column::terms, with the payload decoded.
  bool next(DocumentNumber& number, Occurrences& occurrences);

 private:
  // Reads the next number; false at the end.
  bool next_number();

  const Column column_;
  DocumentNumber number_;
  std::string_view rest_;
  bool is_first_ = true;
};

/// Adds entries, whose numbers grow, to a row's value. A value type.
class EntryWriter {
 public:
  void add(DocumentNumber number, std::string_view payload);
  bool empty() const { return value_.empty(); }
  bool is_full() const { return value_.size() >= kFullRowBytes; }
  DocumentNumber first() const { return first_; }
  const std::string& value() const { return value_; }

 private:
  DocumentNumber first_ = 0, last_ = 0;
  std::string value_;
};

std::string encode_occurrences(const std::vector<std::uint32_t>& positions, std::uint32_t length,
                               float boost);
Occurrences decode_occurrences(std::string_view payload);
std::vector<std::uint32_t> decode_positions(const Occurrences& occurrences);

std::string encode_numbers(const std::vector<double>& numbers);
std::vector<double> decode_numbers(std::string_view payload);
std::string encode_strings(const std::vector<std::string>& strings);
std::vector<std::string> decode_strings(std::string_view payload);

/// What an index has of a document beside its entries: to replace it, and to show it.
struct StoredDocument {
  std::string id;
  std::vector<std::pair<std::string, std::uint32_t>> lengths;  ///< of its fields: terms
  std::string fields;  ///< JSON: an object of the fields that are stored

  std::string encode() const;
  /// Throws an internal error.
  static StoredDocument decode(std::string_view value);
};
/// Reads a snapshot of several. Throws an internal error if one is missing.
std::vector<StoredDocument> read_documents(kv::Transaction& tx, const SearchKeys& keys,
                                           std::span<const DocumentNumber> numbers);

std::string encode_number(DocumentNumber number);
/// Throws an internal error.
DocumentNumber decode_number(std::string_view value);

/// A merge: of the rows of a level, of numbers below `end`, from `cursor` on.
struct MergeInProgress {
  int level = 0;
  int target = 0;
  DocumentNumber end = 0;
  std::int64_t segments = 0;  ///< that are merged
  std::string cursor{};       ///< a key; rows before it are merged
};

/// The state of an index.
struct IndexState {
  DocumentNumber next_number = 1;
  /// Not 0 while a batch is written in several transactions: the number of its first document that is not
  /// visible yet. If the batch is interrupted, the numbers from there on are never used, and the rows of
  /// Part::documents with these numbers are removed.
  DocumentNumber unfinished = 0;
  std::int64_t documents = 0;              ///< live ones
  std::vector<std::int64_t> segments{};    ///< of each level; the last is not 0
  std::optional<MergeInProgress> merge{};  ///< that was begun, if any

  /// The number of levels that have rows. A merge writes rows of a level before it counts as a segment of it.
  std::size_t levels() const {
    return std::max(segments.size(), merge ? static_cast<std::size_t>(merge->target) + 1 : 0);
  }

  std::string encode() const;
  static IndexState decode(std::string_view value);
};

/// Reads a snapshot. A new index has the state IndexState().
IndexState read_state(kv::Transaction& tx, const SearchKeys& keys);

}  // namespace divan::index::search
