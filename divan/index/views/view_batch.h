// The rows that a batch of documents makes in the views of an index, and how they are written: of a document
// that was indexed before, only those that are not what they were; and with them the views' nodes
// (reduce_tree_updater.h).
#pragma once

#include "divan/index/left_out.h"
#include "divan/index/views/large_document.h"
#include "divan/index/views/reduce_tree_updater.h"
#include "divan/index/views/row_lists.h"

namespace divan::index::views {

/// See MappedBatch.
class ViewBatch final : public MappedBatch {
 public:
  /// Rows of this many views. Nodes are kept for the views of `index`, if there is one.
  explicit ViewBatch(std::size_t views, std::shared_ptr<const ViewIndex> index = nullptr);

  void add_document(std::string id);
  /// For the document that was added as number `document`. A row that is too large is left out, and a view
  /// for which the document emits too much has none of its rows; both are logged.
  void add_row(std::size_t document, int view, std::string_view key, std::string_view value);
  /// Rows of the document are missing; the index keeps the first reason (left_out.h).
  void add_failure(std::size_t document, std::string_view reason);
  /// Of the rows so far, about.
  std::size_t bytes() const { return bytes_; }

  std::size_t documents() const override { return documents_.size(); }
  std::size_t prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                      const IndexedSoFar& so_far) override;
  void write(kv::Transaction& tx, const IndexKeys& keys) const override;
  std::size_t rows() const override { return rows_; }
  std::size_t failures() const override { return failures_; }

 private:
  struct Row {
    int view;
    std::string encoded_key;
    std::string key;
    std::string value;
  };
  struct Document {
    std::string id;
    std::vector<Row> rows;
    std::size_t bytes = 0;
    int emptied = -1;  // a view that has none of its rows
    std::optional<LeftOut> left_out{};
  };
  // What is to be done with the rows of a document.
  struct Change {
    const Document* document;
    std::vector<RowPlace> before;   // in order
    std::vector<RowPlace> places;   // of the document's rows, one by one
    std::vector<bool> unchanged{};  // of these
    bool in_order = true;           // these are
    std::optional<LeftOut> left_out_before{};

    std::vector<RowPlace> sorted() const;
  };

  static std::size_t bytes_of(const Document& document, const Row& row);
  void leave_out(std::size_t document, int view, std::string_view why, std::size_t rows);
  void empty_view(std::size_t document, int view);
  bool is_large(const Change& change) const;
  std::size_t prepare_large(std::size_t number);
  static std::vector<RowPlace> places_of(const Document& document);
  static void number_equal_keys(const std::vector<Row>& rows, std::vector<RowPlace>& places);
  void find_unchanged(kv::Transaction& tx, const IndexKeys& keys);
  void prepare_nodes(kv::Database& store, const IndexKeys& keys, const View& view, std::int64_t behind);
  std::vector<EntryChange> row_changes(int view) const;
  // Those of one view, or (-1) of all.
  void write_rows(kv::Transaction& tx, const IndexKeys& keys, int view) const;

  std::vector<Collation> collations_;  // of the views
  const std::shared_ptr<const ViewIndex> index_;
  std::vector<Document> documents_;
  std::size_t bytes_ = 0;
  std::size_t rows_ = 0;
  std::size_t failures_ = 0;

  // What was prepared.
  std::vector<Change> changes_;
  std::optional<LargeDocument> large_;     // that of the only change, until it is written
  bool large_ends_ = false;                // with this transaction
  std::map<int, ReduceNodeWrites> nodes_;  // by view
};

}  // namespace divan::index::views
