// Responses to view queries, page by page: a page is read in one transaction.
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

/// One query in progress. Not thread-safe. Store and catalog must outlive it.
class Query {
 public:
  /// `known_sequence`: the index's sequence when the caller last read it. Throws query_parse_error if the
  /// parameters contradict each other or the view.
  Query(kv::Database& store, docs::Catalog& catalog, std::string database,
        std::shared_ptr<const ViewIndex> index, const View& view, ViewParams params,
        kv::Versionstamp known_sequence = {});

  /// Appends the next piece of the response, a JSON object, to `out`; returns false if it is complete. Throws
  /// not_found if the database or the index has been removed since the last piece.
  bool next(std::string& out);

 private:
  struct Group {
    std::string key;       // JSON, as shown
    std::string encoded;   // the common prefix of its rows' encoded keys
    std::size_t rows = 0;  // rows that were read one by one
  };
  struct Range {
    RowRange rows;
    bool in_one_group = false;  // order does not matter, and reduce nodes may replace rows
    // If in_one_group, and after the split at long bounds:
    bool split = false;
    bool row_by_row = false;
  };

  struct Page;

  // Prefetch, for a remote store, what the next page reads.
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
  bool process_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row, std::string& out);
  void append_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row, std::string& out);
  bool process_reduced_row(const ViewRow& row);
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
  const std::string prefix_;        // of the encoded keys: that of the partition, or empty
  const std::optional<Edge> edge_;  // of _first and _last: the only row of a group that is read

  std::optional<std::int64_t> number_;  // of the database, after the first page
  std::optional<std::string> hidden_;   // a document whose rows are incomplete: it is being written
  kv::Versionstamp last_sequence_;      // the index's sequence when the last page was read
  std::deque<Range> ranges_;            // still to be read, the current one first
  std::uint64_t skip_;
  std::uint64_t left_;
  docs::ReadAhead ahead_{1'000};  // of documents that rows show
  bool first_row_ = true;
  bool ended_ = false;

  std::unique_ptr<Reduction> reduction_;
  std::optional<Group> group_;
  std::deque<std::string> group_keys_;  // of groups that ended and whose values are not known yet
};

}  // namespace divan::index::views
