// Writes the rows that a batch of documents emits into the views of an index: for a document that was indexed
// before, only those that differ. Also updates the views' reduce nodes (reduce_tree_updater.h).
#pragma once

#include "divan/index/document_batch.h"
#include "divan/index/left_out.h"
#include "divan/index/views/large_document.h"
#include "divan/index/views/reduce_tree_updater.h"
#include "divan/index/views/row_lists.h"

namespace divan::index::views {

/// See MappedBatch. Not thread-safe.
class ViewBatch final : public DocumentBatch {
 public:
  /// Rows of `count` views. Maintains reduce nodes for `views`, unless it is null.
  explicit ViewBatch(std::size_t count, std::shared_ptr<const ViewSet> views = nullptr);

  void add_document(std::string id) override;
  /// Adds a row of the document with index `document`. A row that is too large is left out, and a view for
  /// which the document emits too much has none of its rows; both are logged.
  void add_row(std::size_t document, int view, std::string_view key, std::string_view value);
  void add_failure(std::size_t document, std::string_view reason) override;
  std::size_t bytes() const override { return bytes_; }

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
    int emptied = -1;  // the last view from which all of its rows were left out; -1: none
    std::optional<LeftOut> left_out{};
  };
  // The changes to the rows of a document.
  struct Change {
    const Document* document;
    std::vector<RowPosition> before;     // sorted
    std::vector<RowPosition> positions;  // of the document's rows, by index
    std::vector<bool> unchanged{};       // whether the row at the same index of `positions` is unchanged
    bool in_order = true;                // whether `positions` is sorted
    std::optional<LeftOut> left_out_before{};

    std::vector<RowPosition> sorted() const;
  };

  // The encoded key; nullopt if the document belongs to no partition, and the views have rows of these only.
  std::optional<std::string> encoded(const Document& document, int view, std::string_view key) const;
  static std::size_t bytes_of(const Document& document, const Row& row);
  void leave_out(std::size_t document, int view, std::string_view why, std::size_t rows);
  void empty_view(std::size_t document, int view);
  bool is_large(const Change& change) const;
  std::size_t prepare_large(std::size_t number);
  static std::vector<RowPosition> positions_of(const Document& document);
  static void number_equal_keys(const std::vector<Row>& rows, std::vector<RowPosition>& positions);
  void find_unchanged(kv::Transaction& tx, const IndexKeys& keys);
  void prepare_reduce_nodes(kv::Database& store, const IndexKeys& keys, const View& view,
                            std::int64_t behind);
  std::vector<EntryChange> row_changes(int view) const;
  // Writes the rows of one view, or of all views if `view` is -1.
  void write_rows(kv::Transaction& tx, const IndexKeys& keys, int view) const;

  std::vector<Collation> collations_;  // of the views
  const std::shared_ptr<const ViewSet> views_;
  std::vector<Document> documents_;
  std::size_t bytes_ = 0;
  std::size_t rows_ = 0;
  std::size_t failures_ = 0;

  // Set by prepare().
  std::vector<Change> changes_;
  std::optional<LargeDocument> large_;     // of the only change, until it is written
  bool large_ends_ = false;                // the current transaction is its last
  std::map<int, ReduceNodeWrites> nodes_;  // by view
};

}  // namespace divan::index::views
