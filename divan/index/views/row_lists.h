// The lists of the rows that each document has in views, used to remove them when the document changes.
// docs/keyspace.md
#pragma once

#include "divan/index/views/rows.h"

namespace divan::index::views {

/// Identifies a row of a document. A value type.
struct RowPosition {
  int view = 0;
  std::string encoded_key;
  std::uint32_t number = 0;  // distinguishes rows of the document with equal keys
  std::uint32_t chunks = 1;

  auto operator<=>(const RowPosition&) const = default;

  /// Returns true if both are the same row, whatever its size.
  bool same_row(const RowPosition& other) const {
    return view == other.view && number == other.number && encoded_key == other.encoded_key;
  }

  /// The key of a chunk of the row.
  std::string key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) const;
  /// Appends the part of that key after the index part.
  void append_to(std::string& key, std::string_view id, std::uint32_t chunk) const;
  /// The part of that key after the view, without the chunk number: rows are sorted by it.
  std::string position(std::string_view id) const;
};

/// The key of the first chunk of a document's list.
std::string list_key(const IndexKeys& keys, std::string_view id);

/// Reads a document's list, whose first chunk is given. Returns an empty list if `first_chunk` is nullopt.
/// Throws an internal error if the list is damaged, or names a view that is not one of the first `views`.
std::vector<RowPosition> read_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                   const std::optional<std::string>& first_chunk, std::size_t views);

/// Replaces a document's list. `positions` must be sorted.
void write_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                const std::vector<RowPosition>& before, const std::vector<RowPosition>& positions);

// For a list that is written or removed in several transactions:

/// Like read_list(), for a list whose end may be missing.
std::vector<RowPosition> read_begun_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                         std::size_t views);
/// Encodes a list; `positions` must be sorted.
std::string encode_list(const std::vector<RowPosition>& positions);
/// Writes the chunks [first, end) of an encoded list.
void write_list_chunks(kv::Transaction& tx, const IndexKeys& keys, std::string_view id, std::string_view list,
                       std::size_t first, std::size_t end);
void clear_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id);

/// Visits the keys (the part after the index part, chunk by chunk) of the rows in a document's list. Throws
/// an internal error if the list is damaged.
void visit_listed_rows(std::string_view list, std::string_view id,
                       const std::function<void(std::string_view key_after_part)>& visit);

}  // namespace divan::index::views
