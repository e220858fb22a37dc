// Spatial queries. A query is read in several transactions, none of which reads many rows.
#pragma once

#include <deque>
#include <map>
#include <queue>
#include <set>

#include "divan/docs/catalog.h"
#include "divan/index/geo/cells.h"
#include "divan/index/geo/geo_index.h"
#include "divan/index/geo/params.h"
#include "divan/index/views/rows.h"

namespace divan::index::geo {

/// One query in progress. Not thread-safe. Store and catalog must outlive it.
class GeoQuery {
 public:
  /// `name`: one of the spatial indexes of `index`. `known_sequence`: the index's sequence when the caller
  /// last read it.
  GeoQuery(kv::Database& store, docs::Catalog& catalog, std::string database,
           std::shared_ptr<const GeoIndex> index, const std::string& name, GeoParams params,
           kv::Versionstamp known_sequence = {});

  /// Appends the next piece of the response, a JSON object, to `out`; returns false if it is complete. Throws
  /// not_found if the database or the index has been removed since the last piece.
  bool next(std::string& out);

 private:
  struct Row {
    std::string id;
    std::string value;
    std::string position;
    Cell cell = 0;
  };
  struct Result {
    double distance = 0;  // 0 unless the query has a centre
    std::string id;
    std::string revision{};  // that was indexed
    std::string geometry{};  // JSON; empty if it is large: it is read again for the response
    int view = 0;            // of its row
    // Of its row. With `nearest`, "#" and the number for a geometry of several cells, whichever cell is
    // found.
    std::string position;
    std::optional<std::int64_t> number{};  // of the geometry in the document, if it has several cells
    auto order() const { return std::tie(distance, id, position); }
    bool operator<(const Result& other) const { return order() < other.order(); }
  };
  // A part of the Earth whose rows are to be read.
  struct Area {
    double distance = 0;  // from the centre to its nearest point, or less
    int view = 0;
    Cell cell = 0;
    views::RowRange rows{};     // of the cell and those below it, as far as they are not read; empty: all
    bool is_undivided = false;  // these rows are read one after the other
    bool operator>(const Area& other) const { return distance > other.distance; }
  };

  void plan_ranges(const IndexKeys& keys);
  void plan_areas(kv::Transaction& tx, const IndexKeys& keys);
  double least_distance_in(int view, Cell cell) const;
  std::optional<Cell> find_dense_cell(kv::Transaction& tx, const IndexKeys& keys, int view);
  bool search(kv::Transaction& tx, const docs::Database& database);
  bool search_ranges(kv::Transaction& tx, const IndexKeys& keys);
  bool search_nearest(kv::Transaction& tx, const IndexKeys& keys);
  void search_area(kv::Transaction& tx, const IndexKeys& keys, Area area);
  bool is_beyond_results(double distance) const;
  bool is_dense(const Area& area) const;
  std::vector<Row> read_rows(kv::Transaction& tx, const IndexKeys& keys, int view, views::RowRange& range,
                             std::size_t most);
  void match_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const std::vector<Row>& rows,
                  const views::RowRange& whole, views::RowRange& rest,
                  const std::function<bool(Result)>& take);
  std::optional<Result> match(kv::Transaction& tx, const IndexKeys& keys, int view, const Row& row);
  std::string read_geometry(kv::Transaction& tx, const IndexKeys& keys, const Result& result) const;
  bool is_first_cell(Cell cell, const std::vector<Cell>& cells) const;
  static views::RowRange rows_of(const IndexKeys& keys, int view, const CellRange& range);
  void append_results(kv::Transaction& tx, const docs::Database& database, std::string& out);
  void append_result(kv::Transaction& tx, const docs::Database& database, const Result& result,
                     std::string_view geometry, std::string& out) const;
  std::string next_bookmark() const;

  kv::Database& store_;
  docs::Catalog& catalog_;
  const std::string database_;
  const std::shared_ptr<const GeoIndex> index_;
  const GeoViews views_;
  const GeoParams params_;
  const std::optional<Matcher> matcher_;
  const std::size_t query_positions_;       // of the geometry, if it is compared
  const std::vector<Cell> areas_of_query_;  // cells in which results are
  const std::vector<CellRange> cells_;      // to be searched, in order

  std::optional<std::int64_t> number_;  // of the database, after the first transaction
  std::optional<std::string> hidden_;   // a document whose rows are incomplete: it is being written
  kv::Versionstamp last_sequence_;

  std::vector<int> searched_views_;                     // of points and cells, those with rows
  std::deque<std::pair<int, views::RowRange>> ranges_;  // of these, still to be searched
  std::uint64_t skip_;
  // Of the nearest results:
  std::map<int, Cell> dense_;  // by view: a cell with more rows than are read at once
  std::priority_queue<Area, std::vector<Area>, std::greater<>> areas_;
  std::set<Result> nearest_;

  Duration spent_{};  // processor time of comparisons
  std::vector<Result> results_;
  std::size_t held_bytes_ = 0;  // of geometries
  std::size_t rows_read_ = 0;   // in this transaction, and comparisons that take as long
  bool found_all_ = false;
  std::size_t written_ = 0;  // of the results
  bool begun_ = false;       // the response
  bool is_first_ = true;     // no result is in the response yet
  bool ended_ = false;
};

}  // namespace divan::index::geo
