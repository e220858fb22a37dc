// Documents with too many rows for one transaction of the store. They are written in several transactions,
// and become visible with the last one, which also advances the index's sequence.
//
// Until then the index has a record with the document's id, and queries skip all rows of that document: the
// old rows are removed first, and the new ones are incomplete. The list of the document's rows is written
// before the rows, so after an interrupted build the record and the list show which rows may exist; the next
// build removes them, and maps the document again. Reduce nodes of views that the document has rows in are
// dropped, and rebuilt at the build's end.
#pragma once

#include "divan/index/views/row_lists.h"

namespace divan::index::views {

/// The key of that record.
std::string large_document_key(const IndexKeys& keys);

/// The id of the document whose rows readers must skip, or nullopt if there is none. Reads a snapshot.
std::optional<std::string> read_hidden_document(kv::Transaction& tx, const IndexKeys& keys);

/// Approximate size in bytes of a transaction that removes these rows.
std::size_t clearing_bytes(std::string_view id, const std::vector<RowPosition>& positions);

/// Writes the rows of a large document. Thread-compatible.
class LargeDocument {
 public:
  struct Rows {
    std::string id;
    std::vector<RowPosition> before;                   // the old rows, sorted
    std::vector<RowPosition> list;                     // the new rows, sorted
    std::vector<RowPosition> positions;                // the new rows in any order
    std::function<std::string(std::size_t)> value_of;  // encode_row() of the row at an index of `positions`
    std::vector<int> reduced_views;                    // views with reduce nodes
  };
  explicit LargeDocument(Rows rows);

  /// Prepares the next transaction; returns true if it is the last one. The previous one must have been
  /// committed.
  bool prepare();

  /// Writes the current transaction; can be called again if it is retried. Throws a conflict if the record
  /// belongs to another document.
  void write(kv::Transaction& tx, const IndexKeys& keys) const;

 private:
  enum class Step { begin, clear, list, rows, end };

  void plan_piece(std::size_t size, Step after, const std::function<std::size_t(std::size_t)>& cost);
  void begin(kv::Transaction& tx, const IndexKeys& keys) const;
  void add_to_counts(kv::Transaction& tx, const IndexKeys& keys, const std::vector<RowPosition>& rows,
                     std::int64_t sign) const;

  const Rows rows_;
  const std::string list_;  // encoded
  Step next_ = Step::begin;
  std::size_t at_ = 0;  // progress within `next_`
  // The current transaction.
  Step step_ = Step::begin;
  std::size_t first_ = 0, end_ = 0;
  bool last_of_step_ = false;
};

/// The next piece of work that removes the rows of a large document after an interrupted build; null if there
/// is none.
std::unique_ptr<IndexWork> remove_interrupted_document(kv::Database& store, const IndexKeys& keys,
                                                       std::size_t views);

}  // namespace divan::index::views
