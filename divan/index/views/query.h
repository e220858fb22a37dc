// Answers to queries of views, page by page: a page is read in one transaction.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "divan/docs/catalog.h"
#include "divan/docs/read_ahead.h"
#include "divan/index/views/builtin_reduce.h"
#include "divan/index/views/params.h"
#include "divan/index/views/reduction.h"
#include "divan/index/views/view_index.h"

namespace divan::index::views {

/// One query on its way. Not thread-safe. Store and catalog must outlive it.
class Query {
 public:
  /// `seen`: how far the index was when somebody looked last. Throws query_parse_error if the parameters
  /// contradict each other or the view.
  Query(kv::Database& store, docs::Catalog& catalog, std::string database,
        std::shared_ptr<const ViewIndex> index, const View& view, ViewParams params,
        kv::Versionstamp seen = {});

  /// Appends the next piece of the answer, a JSON object, to `out`; false when it is complete. Throws
  /// not_found if the database or the index has been removed since the last piece.
  bool next(std::string& out);

 private:
  struct Group {
    std::string key;       // JSON, as it is shown
    std::string encoded;   // what its rows' encoded keys have in common
    std::size_t rows = 0;  // that were read one by one
  };
  struct Range {
    RowRange rows;
    bool in_one_group = false;  // in whatever order, and with nodes for rows
    // Of one in one group, once it was split at bounds that nodes do not know:
    bool split = false;
    bool row_by_row = false;
  };

  struct Page;

  // They say on a remote store what the next page reads.
  void prefetch_state(kv::Transaction& tx);
  void prefetch_documents(kv::Transaction& tx, const docs::Database& database, const IndexKeys& keys);

  void plan_ranges(const docs::Database& database);
  void append_head(kv::Transaction& tx, const docs::Database& database, std::string& out);
  void read_page(kv::Transaction& tx, const docs::Database& database, std::string& out);
  void read_rows(kv::Transaction& tx, const docs::Database& database, const IndexKeys& keys, Page& page);
  void read_group(kv::Transaction& tx, const IndexKeys& keys, Page& page);
  void split_at_bounds(const IndexKeys& keys);
  void split_off_group(const IndexKeys& keys);
  void skip_rest_of_group(const IndexKeys& keys);
  bool take_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row, std::string& out);
  void append_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row, std::string& out);
  bool take_reduced(const ViewRow& row);
  void end_group();
  std::string shown_row(std::string_view key, Reduced reduced) const;
  void append_groups(std::string& out);
  bool is_done() const;
  bool has_enough() const;

  kv::Database& store_;
  docs::Catalog& catalog_;
  const std::string database_;
  const std::shared_ptr<const ViewIndex> index_;
  const View& view_;
  const ViewParams params_;
  const bool reduces_;
  const std::optional<Edge> edge_;  // of a group: all that its function looks at

  std::optional<std::int64_t> number_;  // of the database, once the first page was read
  std::optional<std::string> hidden_;   // a document whose rows are not all there: it is being written
  kv::Versionstamp seen_;               // the index's sequence, when the last page was read
  std::deque<Range> ranges_;            // still to be read, the one that is being read first
  std::uint64_t skip_;
  std::uint64_t left_;
  docs::ReadAhead ahead_{1'000};  // documents that rows show
  bool first_row_ = true;
  bool ended_ = false;

  std::unique_ptr<Reduction> reduction_;
  std::optional<Group> group_;
  std::deque<std::string> group_keys_;  // of the groups that ended and have no value yet
};

}  // namespace divan::index::views
