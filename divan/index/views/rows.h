// How views lie in the store, below IndexKeys.
//
// Part 1 has the rows: (view number), the encoded key, (document id), and the number (4 bytes) and chunk (2
// bytes), big end first. The encoding (collation.h) makes byte order the order of the keys; the document's id
// orders equal keys; the number tells apart rows of one document with the same key. A value too large for one
// row of the store goes on in further chunks.
//
// Keys of the store end at 10,000 bytes, so of a long encoded key only the beginning stands in the row's key,
// with a digest of all of it behind; the rest stands in the value. Rows whose keys begin alike therefore lie
// in the order of their digests, and readers sort them: visit_rows() reads the distinct keys of such a run
// first. Keys that are that long and alike are rare and few; ordinary rows cost nothing. Digests rather than
// labels that sort, since where a row lies then depends on nothing but the row (reduce_nodes.h), and writing
// one reads nothing. Part 2 has for each document the list of its rows, so that they can be taken out again
// when it changes. Part 3 counts the rows of each view. docs/keyspace.md
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "divan/index/index.h"

namespace divan::index::views {

/// Encoded keys up to this length stand in the row's key whole.
inline constexpr std::size_t kMaxWholeKeyBytes = 5'484;
/// Of a longer one this many bytes of its digest stand behind its beginning.
inline constexpr std::size_t kKeyDigestBytes = 16;

/// Whether an encoded key is too long to stand in a row's key whole.
constexpr bool is_long_key(std::string_view encoded_key) { return encoded_key.size() > kMaxWholeKeyBytes; }

/// What of an encoded key stands in the row's key.
std::string stored_key(std::string_view encoded_key);

/// A row as a reader sees it; valid during the visit.
struct ViewRow {
  std::string_view encoded_key;
  std::string_view id;     // the document's
  std::string_view key;    // JSON
  std::string_view value;  // JSON
  /// Where it is among the rows that are visited: see rows_after() and rows_before().
  std::string_view place;
};

/// Answers whether to go on.
using ViewRowVisitor = std::function<bool(const ViewRow&)>;

/// Rows of a view whose encoded keys (and then document ids) lie in [begin, end): in the order of the keys,
/// as if keys of the store had no limit, or for visit_stored_rows() in the order of the store. It is the same
/// where has_long_bounds() is false.
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

/// The same in the order of the store, where long keys that begin alike are in no order.
void visit_stored_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range,
                       bool descending, const ViewRowVisitor& visit);

/// Whether a range may begin or end among rows with long keys that begin alike.
bool has_long_bounds(const IndexKeys& keys, int view, const RowRange& range);

/// A range with long bounds in pieces: at its ends those rows that are to be visited by visit_rows(), and
/// what is between them, which has the same rows for visit_stored_rows(). Any may be empty (begin >= end).
struct SplitRange {
  RowRange first, middle, last;
};
SplitRange split_at_long_bounds(const IndexKeys& keys, int view, const RowRange& range);

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
