// How views lie in the store, below IndexKeys.
//
// Part 1 has the rows: (view number), the encoded key, (document id), and the number (4 bytes) and chunk (2
// bytes), big end first. The encoding (collation.h) makes byte order the order of the keys; the document's id
// orders equal keys; the number tells apart rows of one document with the same key. A value too large for one
// row of the store goes on in further chunks. Part 2 has for each document the list of its rows, so that they
// can be taken out again when it changes. Part 3 counts the rows of each view. docs/keyspace.md
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "divan/index/index.h"

namespace divan::index::views {

/// A row as a reader sees it; valid during the visit.
struct ViewRow {
  std::string_view encoded_key;
  std::string_view id;     // the document's
  std::string_view key;    // JSON
  std::string_view value;  // JSON
  std::string_view place;  // the row's place in the store: see rows_after() and rows_before()
};

/// Answers whether to go on.
using ViewRowVisitor = std::function<bool(const ViewRow&)>;

/// Keys of the rows of a view whose encoded keys (and then document ids) lie in [begin, end).
struct RowRange {
  std::string begin;
  std::string end;
};

/// The store's key at which the rows with an encoded key (and in them those from a document id on) begin.
std::string row_key_begin(const IndexKeys& keys, int view, std::string_view encoded_key,
                          std::string_view id = {});
/// The store's key behind the rows with an encoded key (and in them those up to and with a document id).
std::string row_key_end(const IndexKeys& keys, int view, std::string_view encoded_key,
                        std::optional<std::string_view> id = std::nullopt);
/// All rows of a view.
RowRange all_rows(const IndexKeys& keys, int view);

/// What is left of a range behind a row (forwards), and before it (backwards).
RowRange rows_after(RowRange range, std::string_view place);
RowRange rows_before(RowRange range, std::string_view place);

/// Visits the rows of a range, which lie in view `view`, in order or backwards. Reads a snapshot.
void visit_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range, bool descending,
                const ViewRowVisitor& visit);

/// A row's key behind the part, cut in two: the row's place, and the number of the chunk. Throws an internal
/// error if it is no row's.
std::pair<std::string_view, std::uint32_t> split_row_key(std::string_view key_behind_part);

/// Checks a row: its place (see split_row_key()), and the value, all chunks together. Throws an internal
/// error if it is no row, or what it has is no JSON.
void check_row(std::string_view place, std::string_view value);

/// How many rows a view has.
std::int64_t count_rows(kv::Transaction& tx, const IndexKeys& keys, int view);
/// Counts rows that are added, or with a negative number removed.
void add_to_count(kv::Transaction& tx, const IndexKeys& keys, int view, std::int64_t rows);

/// A row's value in the store, all chunks together.
std::string encode_row(std::string_view encoded_key, std::string_view key, std::string_view value);

inline constexpr int kRowsPart = 1;
inline constexpr int kDocumentsPart = 2;
inline constexpr int kCountsPart = 3;

}  // namespace divan::index::views
