// The layout of views in the store, below IndexKeys.
//
// Part 1 has the rows: (view number), the encoded key, (document id), the number (4 bytes) and the chunk (2
// bytes), both big-endian. The encoding (collation.h) makes byte order the order of the keys; the document's
// id orders equal keys; the number distinguishes rows of one document with the same key. A value too large
// for one row of the store is split into chunks.
//
// Keys of the store have at most 9,900 bytes, so a row's key contains only a prefix of a long encoded key,
// followed by a digest of all of it; the rest is in the value. Rows whose keys have a common long prefix are
// therefore sorted by their digests, and readers restore the order: visit_rows() reads the distinct keys of
// such a run first. Such keys are rare and few; ordinary rows cost nothing extra. A digest is used rather
// than a label that sorts, because the position of a row then depends on the row only (reduce_nodes.h), and
// writing one needs no reads. Part 2 has the list of rows of each document, used to remove them when it
// changes. Part 3 counts the rows of each view. docs/keyspace.md
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "divan/index/index.h"

namespace divan::index::views {

/// Encoded keys up to this length are stored whole in the row's key.
inline constexpr std::size_t kMaxWholeKeyBytes = 5'484;
/// A longer one is stored as a prefix followed by this many bytes of its digest.
inline constexpr std::size_t kKeyDigestBytes = 16;

/// Returns true if an encoded key is too long to be stored whole in a row's key.
constexpr bool is_long_key(std::string_view encoded_key) { return encoded_key.size() > kMaxWholeKeyBytes; }

/// The bytes with which the encoded keys of a partition's rows begin in a partitioned view.
std::string partition_prefix(std::string_view partition);

/// The form of an encoded key in the row's key.
std::string stored_key(std::string_view encoded_key);

/// A row as a reader sees it; valid during the visit.
struct ViewRow {
  std::string_view encoded_key;
  std::string_view id;     // the document's
  std::string_view key;    // JSON
  std::string_view value;  // JSON
  /// Its position among the visited rows: see rows_after() and rows_before().
  std::string_view position;
};

/// Returns true to continue.
using ViewRowVisitor = std::function<bool(const ViewRow&)>;

/// Rows of a view whose encoded keys (and then document ids) are in [begin, end). They are in the order of
/// keys, as if keys of the store had no length limit, or for visit_stored_rows() in the order of the store.
/// The two orders are the same if has_long_bounds() is false.
struct RowRange {
  std::string begin;
  std::string end;
};

/// The store's key of the first row with an encoded key (and, among these, with at least a document id).
std::string row_key_begin(const IndexKeys& keys, int view, std::string_view encoded_key,
                          std::string_view id = {});
/// The store's key after the last row with an encoded key (and, among these, with at most a document id).
std::string row_key_end(const IndexKeys& keys, int view, std::string_view encoded_key,
                        std::optional<std::string_view> id = std::nullopt);
/// All rows of a view.
RowRange all_rows(const IndexKeys& keys, int view);

/// The rest of a range after a row (forwards), and before it (backwards).
RowRange rows_after(RowRange range, std::string_view position);
RowRange rows_before(RowRange range, std::string_view position);

/// Visits the rows of a range of view `view`, in order or backwards. Reads a snapshot.
void visit_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range, bool descending,
                const ViewRowVisitor& visit);

/// The same in the order of the store, in which long keys with a common prefix are not sorted.
void visit_stored_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range,
                       bool descending, const ViewRowVisitor& visit);

/// Returns true if a range may begin or end among rows with long keys that have a common prefix.
bool has_long_bounds(const IndexKeys& keys, int view, const RowRange& range);

/// A range with long bounds, in pieces: `first` and `last` must be visited with visit_rows(); `middle` has
/// the same rows for visit_stored_rows(). Any of them may be empty (begin >= end).
struct SplitRange {
  RowRange first, middle, last;
};
SplitRange split_at_long_bounds(const IndexKeys& keys, int view, const RowRange& range);

/// Splits a row's key after the index part: the row's position, and the chunk number. Throws an internal
/// error if it is not the key of a row.
std::pair<std::string_view, std::uint32_t> split_row_key(std::string_view key_after_part);

/// Checks a row: its position (see split_row_key()), and its value with all chunks joined. Throws an internal
/// error if they are not those of a row, or contain invalid JSON.
void check_row(std::string_view position, std::string_view value);

/// Returns the number of rows of a view.
std::int64_t count_rows(kv::Transaction& tx, const IndexKeys& keys, int view);
/// Adds to the number of rows of a view; `rows` is negative for removed rows.
void add_to_count(kv::Transaction& tx, const IndexKeys& keys, int view, std::int64_t rows);

/// A row's value in the store, with all chunks joined.
std::string encode_row(std::string_view encoded_key, std::string_view key, std::string_view value);

inline constexpr int kRowsPart = 1;
inline constexpr int kDocumentsPart = 2;
inline constexpr int kCountsPart = 3;

}  // namespace divan::index::views
