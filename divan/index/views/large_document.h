// Documents whose rows are too many for one transaction of the store: they are written in several, and become
// visible with the last one, which also moves the index's sequence on.
//
// As long as that goes on, the index has a record with the document's id, and queries skip all rows of that
// document: the old ones are taken out first, and the new ones are not all there. The list of the document's
// rows is written before the rows, so whoever finds the record of a build that was broken off knows which
// rows there may be; they are taken out, and the document is mapped again. Nodes of views that the document
// has rows in are dropped, and made anew at the build's end.
#pragma once

#include "divan/index/views/row_lists.h"

namespace divan::index::views {

/// The key of that record.
std::string large_document_key(const IndexKeys& keys);

/// The document whose rows a reader has to skip, if there is one. Reads a snapshot.
std::optional<std::string> read_hidden_document(kv::Transaction& tx, const IndexKeys& keys);

/// What a transaction does, about, to take these rows out.
std::size_t clearing_bytes(std::string_view id, const std::vector<RowPlace>& places);

/// The rows of a large document, before they are written. Thread-compatible.
class LargeDocument {
 public:
  struct Rows {
    std::string id;
    std::vector<RowPlace> before;                      // in order
    std::vector<RowPlace> list;                        // the new rows, in order
    std::vector<RowPlace> places;                      // the same in any order
    std::function<std::string(std::size_t)> value_of;  // of one of `places`: encode_row()
    std::vector<int> node_views;                       // views with nodes
  };
  explicit LargeDocument(Rows rows);

  /// Turns to the next transaction; returns true if it is the last one. What was turned to before has been
  /// committed.
  bool prepare();

  /// Repeatable. Throws a conflict if the record is another one's.
  void write(kv::Transaction& tx, const IndexKeys& keys) const;

 private:
  enum class Step { begin, clear, list, rows, end };

  void take(std::size_t size, Step after, const std::function<std::size_t(std::size_t)>& cost);
  void begin(kv::Transaction& tx, const IndexKeys& keys) const;
  void add_to_counts(kv::Transaction& tx, const IndexKeys& keys, const std::vector<RowPlace>& rows,
                     std::int64_t sign) const;

  const Rows rows_;
  const std::string list_;  // encoded
  Step next_ = Step::begin;
  std::size_t at_ = 0;  // where that goes on
  // The present transaction.
  Step step_ = Step::begin;
  std::size_t first_ = 0, end_ = 0;
  bool last_of_step_ = false;
};

/// The next piece of taking out what a build that was broken off has left of a large document; null if there
/// is none.
std::unique_ptr<IndexWork> remove_large_remains(kv::Database& store, const IndexKeys& keys,
                                                std::size_t views);

}  // namespace divan::index::views
