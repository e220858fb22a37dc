// The lists of the rows that documents have in views, so that rows can be taken out again when their document
// changes. docs/keyspace.md
#pragma once

#include "divan/index/views/rows.h"

namespace divan::index::views {

/// Which row of a document it is. A value.
struct RowPlace {
  int view = 0;
  std::string encoded_key;
  std::uint32_t number = 0;  // tells rows of the document with equal keys apart
  std::uint32_t chunks = 1;

  auto operator<=>(const RowPlace&) const = default;

  /// Whether they are the same row, be it of another size.
  bool same_row(const RowPlace& other) const {
    return view == other.view && number == other.number && encoded_key == other.encoded_key;
  }

  /// The key of a chunk of the row.
  std::string key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) const;
  /// What of that is behind the part.
  void append_to(std::string& key, std::string_view id, std::uint32_t chunk) const;
  /// What of that is behind the view, without the chunk: what rows are ordered by.
  std::string place(std::string_view id) const;
};

/// The key of the first chunk of a document's list.
std::string list_key(const IndexKeys& keys, std::string_view id);

/// A document's list, of which the first chunk is given: nothing if there is none. Throws an internal error
/// if it is damaged, or names a view that is not one of the first `views`.
std::vector<RowPlace> read_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                const std::optional<std::string>& first_chunk, std::size_t views);

/// Writes a document's list in the place of another one. `places` are in order.
void write_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                const std::vector<RowPlace>& before, const std::vector<RowPlace>& places);

// Of a list that is written, or taken out, in several transactions:

/// As read_list(), of a list whose end may not have been written.
std::vector<RowPlace> read_begun_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                      std::size_t views);
/// The list's bytes; `places` are in order.
std::string encode_list(const std::vector<RowPlace>& places);
/// Writes chunks of it.
void write_list_chunks(kv::Transaction& tx, const IndexKeys& keys, std::string_view id, std::string_view list,
                       std::size_t first, std::size_t end);
void clear_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id);

/// Visits the keys (what is behind the part, chunk by chunk) of the rows that the list of a document's rows
/// names. Throws an internal error if the list is damaged.
void visit_listed_rows(std::string_view list, std::string_view id,
                       const std::function<void(std::string_view key_behind_part)>& visit);

}  // namespace divan::index::views
