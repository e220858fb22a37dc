#include "divan/index/geo/query.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/index/geo/distance.h"
#include "divan/index/geo/geos.h"
#include "divan/index/views/large_document.h"

namespace divan::index::geo {
namespace {

using views::RowRange;

// A transaction ends after about this many rows.
constexpr std::size_t kPageRows = 1'000;
// Comparing geometries with this many positions takes about as long as reading a row.
constexpr std::size_t kPositionsOfARow = 100;
// The time that a comparison of this many takes need not be limited.
constexpr std::size_t kFewPositions = 1'000;
// Rows that are held at once: as many, and bytes.
constexpr std::size_t kHeldRows = 200;
constexpr std::size_t kHeldBytes = 1 << 20;
// Geometries of results that are held: each, and together.
constexpr std::size_t kHeldGeometry = 1'000;
constexpr std::size_t kHeldGeometries = 4 << 20;
// Finding the first row of a range takes about as long as reading this many rows.
constexpr std::size_t kRowsOfALookup = 10;
// An area with more rows is divided, in a search of the nearest.
constexpr std::size_t kRowsOfAnArea = 32;
// A page of the response ends when it has this many bytes.
constexpr std::size_t kPageBytes = 256 << 10;

std::string encoded(std::string_view key) { return collation::encode_key(key, collation::Collation::raw); }

Cell parse_cell(std::string_view name_json) {
  Cell cell = 0;
  if (name_json.size() != 18) throw internal_error("the name of a cell in a spatial index is damaged");
  const char* const end = name_json.data() + 17;
  const auto [parsed, error] = std::from_chars(name_json.data() + 1, end, cell, 16);
  if (error != std::errc() || parsed != end)
    throw internal_error("the name of a cell in a spatial index is damaged");
  return cell;
}

// What is stored has been parsed before: a failure is not the client's.
Geometry parse_stored(std::string_view json) {
  try {
    return Geometry::from_geojson(json);
  } catch (const Error& error) {
    throw internal_error("A geometry in a spatial index is damaged: " + std::string(error.reason()));
  }
}

std::vector<Cell> areas_of(const GeoParams& params) {
  if (!params.geometry || params.relation == Relation::disjoint) return top_cells();
  return query_cells(*params.geometry);
}

std::optional<Matcher> matcher_of(const GeoParams& params) {
  if (!params.geometry || params.radius) return std::nullopt;
  return Matcher(*params.geometry, params.relation);
}

}  // namespace

GeoQuery::GeoQuery(kv::Database& store, docs::Catalog& catalog, std::string database,
                   std::shared_ptr<const GeoIndex> index, const std::string& name, GeoParams params,
                   kv::Versionstamp known_sequence)
    : store_(store),
      catalog_(catalog),
      database_(std::move(database)),
      index_(std::move(index)),
      views_(*index_->find(name)),
      params_(std::move(params)),
      matcher_(matcher_of(params_)),
      query_positions_(matcher_ ? params_.geometry->positions() : 0),
      areas_of_query_(areas_of(params_)),
      cells_(intersecting_cells(areas_of_query_)),
      last_sequence_(known_sequence),
      skip_(params_.skip) {}

bool GeoQuery::next(std::string& out) {
  if (ended_) return false;
  // Not run(): a page must not be read twice, and a transaction that only reads is not retried.
  const auto tx = store_.begin();
  const docs::Database database = catalog_.open(*tx, database_);
  if (number_ && database.number() != *number_) throw not_found("Database does not exist.");
  rows_read_ = 0;
  const IndexKeys keys(database, index_->signature());
  const auto sequence = read_sequence(*tx, keys, kv::Isolation::snapshot);
  if (sequence < last_sequence_) throw not_found("The index was removed.");
  last_sequence_ = sequence;
  hidden_ = views::read_hidden_document(*tx, keys);
  if (!number_) {
    for (const int view : {views_.points, views_.cells}) {
      if (views::count_rows(*tx, keys, view) > 0) searched_views_.push_back(view);
    }
    params_.nearest ? plan_areas(*tx, keys) : plan_ranges(keys);
    number_ = database.number();
  }
  if (!found_all_) {
    found_all_ = search(*tx, database);
    if (!found_all_) return true;
  }
  append_results(*tx, database, out);
  return !ended_;
}

void GeoQuery::plan_ranges(const IndexKeys& keys) {
  for (const int view : searched_views_) {
    for (const auto& cells : view == views_.points ? cells_below(areas_of_query_) : cells_) {
      auto range = rows_of(keys, view, cells);
      // A bookmark can be forged: it must not move the beginning of a range backwards.
      if (params_.bookmark && !params_.bookmark->position.empty())
        range.begin = std::max(range.begin, views::rows_after(range, params_.bookmark->position).begin);
      ranges_.emplace_back(view, std::move(range));
    }
  }
}

void GeoQuery::plan_areas(kv::Transaction& tx, const IndexKeys& keys) {
  std::set<Cell> above;
  for (const auto cell : areas_of_query_) {
    for (const int view : searched_views_)
      areas_.push({.distance = least_distance_in(view, cell), .view = view, .cell = cell});
    for (const auto one : ancestors(cell)) above.insert(one);
  }
  for (const int view : searched_views_) {
    if (const auto cell = find_dense_cell(tx, keys, view)) dense_[view] = *cell;
    if (view == views_.points) continue;
    for (const auto cell : above)
      areas_.push({.distance = least_distance_in(view, cell),
                   .view = view,
                   .cell = cell,
                   .rows = rows_of(keys, view, {cell, cell}),
                   .is_undivided = true});
  }
}

// A lower bound of the distance to what has a row in a cell. A geometry that is in the area of the query may
// be nearer to the centre outside of this area, where it is not searched: such geometries are all read.
double GeoQuery::least_distance_in(int view, Cell cell) const {
  if (view != views_.points && params_.geometry && params_.relation != Relation::disjoint && !params_.radius)
    return 0;
  return least_distance(*params_.centre, cell);
}

// The smallest cell around the centre that has more rows than an area which is not divided. Cells around it
// need not be read to see that they have, too.
std::optional<Cell> GeoQuery::find_dense_cell(kv::Transaction& tx, const IndexKeys& keys, int view) {
  const Cell centre = leaf_cell(*params_.centre);
  const auto above = ancestors(centre);
  auto range = rows_of(keys, view, {centre, cells_below(above.back()).last});
  const auto rows = read_rows(tx, keys, view, range, kRowsOfAnArea + 1);
  if (rows.size() <= kRowsOfAnArea) return std::nullopt;
  return *std::ranges::find_if(above,
                               [&](Cell cell) { return cells_below(cell).contains(rows.back().cell); });
}

bool GeoQuery::is_dense(const Area& area) const {
  const auto found = dense_.find(area.view);
  return found != dense_.end() && cells_below(area.cell).contains(found->second);
}

// Searches until enough rows are read; returns true if all results are known.
bool GeoQuery::search(kv::Transaction& tx, const docs::Database& database) {
  const IndexKeys keys(database, index_->signature());
  if (params_.limit == 0) return true;
  if (!params_.nearest) return search_ranges(tx, keys);
  if (!search_nearest(tx, keys)) return false;
  for (auto& result : nearest_) {
    if (skip_ > 0) {
      --skip_;
    } else {
      results_.push_back(result);
    }
  }
  return true;
}

bool GeoQuery::search_ranges(kv::Transaction& tx, const IndexKeys& keys) {
  while (!ranges_.empty()) {
    if (rows_read_ >= kPageRows) return false;
    auto& [view, range] = ranges_.front();
    const RowRange whole = range;
    match_rows(tx, keys, view, read_rows(tx, keys, view, range, kHeldRows), whole, range, [&](Result result) {
      if (skip_ > 0) {
        --skip_;
      } else {
        results_.push_back(std::move(result));
      }
      return results_.size() < params_.limit;
    });
    if (results_.size() == params_.limit) return true;
    if (range.begin >= range.end) ranges_.pop_front();
  }
  return true;
}

// Calls `take` with the results among rows of a range, until it returns false or the transaction has done
// enough. `rest` is what is left of the range then.
void GeoQuery::match_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const std::vector<Row>& rows,
                          const RowRange& whole, RowRange& rest, const std::function<bool(Result)>& take) {
  for (const auto& row : rows) {
    auto result = match(tx, keys, view, row);
    const bool goes_on = !result || take(*std::move(result));
    if (goes_on && rows_read_ < kPageRows) continue;
    if (&row != &rows.back()) rest = views::rows_after(whole, row.position);
    return;
  }
}

bool GeoQuery::search_nearest(kv::Transaction& tx, const IndexKeys& keys) {
  while (!areas_.empty()) {
    if (rows_read_ >= kPageRows) return false;
    const Area area = areas_.top();
    if (is_beyond_results(area.distance)) return true;
    areas_.pop();
    search_area(tx, keys, area);
  }
  return true;
}

bool GeoQuery::is_beyond_results(double distance) const {
  if (params_.radius && distance > *params_.radius) return true;
  return nearest_.size() == params_.skip + params_.limit && distance > nearest_.rbegin()->distance;
}

void GeoQuery::search_area(kv::Transaction& tx, const IndexKeys& keys, Area area) {
  if (area.rows.begin.empty()) area.rows = rows_of(keys, area.view, cells_below(area.cell));
  const std::size_t most = area.is_undivided ? kHeldRows : kRowsOfAnArea;
  const auto whole = area.rows;
  std::vector<Row> rows;
  const bool is_known = !area.is_undivided && is_dense(area);
  if (!is_known) rows = read_rows(tx, keys, area.view, area.rows, most);
  if (area.rows.begin < area.rows.end && !area.is_undivided) {
    const auto below = children(area.cell);
    for (const auto cell : below)
      areas_.push({.distance = least_distance_in(area.view, cell), .view = area.view, .cell = cell});
    // Points are in the smallest cells.
    if (!below.empty() && (area.view == views_.points || !is_indexed(area.cell))) return;
    area.is_undivided = true;
    area.rows = rows_of(keys, area.view, {area.cell, area.cell});
    areas_.push(std::move(area));
    return;
  }
  match_rows(tx, keys, area.view, rows, whole, area.rows, [&](Result result) {
    const auto& after = params_.bookmark;
    if (after && !after->position.empty() &&
        result.order() <= std::tie(after->distance, after->id, after->position))
      return true;
    nearest_.insert(std::move(result));
    if (nearest_.size() > params_.skip + params_.limit) nearest_.erase(std::prev(nearest_.end()));
    return true;
  });
  if (area.rows.begin >= area.rows.end) return;
  area.is_undivided = true;
  areas_.push(std::move(area));
}

RowRange GeoQuery::rows_of(const IndexKeys& keys, int view, const CellRange& range) {
  return {views::row_key_begin(keys, view, encoded(json::quoted(cell_name(range.first)))),
          views::row_key_end(keys, view, encoded(json::quoted(cell_name(range.last))))};
}

// Reads the first rows of a range, and removes them from it.
std::vector<GeoQuery::Row> GeoQuery::read_rows(kv::Transaction& tx, const IndexKeys& keys, int view,
                                               RowRange& range, std::size_t most) {
  std::vector<Row> rows;
  std::string position;
  std::size_t bytes = 0, visited = 0;
  bool is_cut = false;
  views::visit_stored_rows(tx, keys, view, range, false, [&](const views::ViewRow& row) {
    if (rows.size() == most || bytes >= kHeldBytes || visited == kPageRows) {
      is_cut = true;
      return false;
    }
    ++visited;
    position = row.position;
    if (row.id == hidden_) return true;
    rows.push_back({std::string(row.id), std::string(row.value), position, parse_cell(row.key)});
    bytes += row.value.size();
    return true;
  });
  rows_read_ += visited + kRowsOfALookup;
  if (is_cut) {
    range = views::rows_after(range, position);
  } else {
    range.begin = range.end;
  }
  return rows;
}

// The result, if the row's geometry is one. In a search of ranges, a geometry of several cells is found by
// the first of these that is searched, and ignored in the others.
std::optional<GeoQuery::Result> GeoQuery::match(kv::Transaction& tx, const IndexKeys& keys, int view,
                                                const Row& row) {
  Result result{.id = row.id, .view = view, .position = row.position};
  std::vector<Cell> cells;
  std::string_view geometry_json;
  bool is_first = true;
  json::for_each_element(row.value, [&](std::string_view element) {
    if (std::exchange(is_first, false)) {
      result.revision = json::string_value(element).value_or("");
    } else if (element.starts_with('{')) {
      geometry_json = element;
    } else if (!result.number) {
      result.number = json::int_value(element).value_or(0);
    } else {
      cells.push_back(parse_cell(element));
    }
    return true;
  });
  std::string stored;
  if (result.number) {
    // The nearest cells may be any of them; a result that is found again is the same one.
    if (params_.nearest) {
      result.position = fmt::format("#{}", *result.number);
    } else if (!is_first_cell(row.cell, cells)) {
      return std::nullopt;
    }
    stored = read_geometry(tx, keys, result);
    ++rows_read_;
    if (stored.empty()) throw internal_error("A geometry is missing from a spatial index.");
    geometry_json = stored;
  }
  const auto geometry = parse_stored(geometry_json);
  const std::size_t positions = geometry.positions() + query_positions_;
  rows_read_ += positions / kPositionsOfARow;
  std::optional<ComparisonTime> time;
  if (positions > kFewPositions) time.emplace(spent_);
  if (matcher_ && !matcher_->matches(geometry)) return std::nullopt;
  if (params_.centre) result.distance = distance(*params_.centre, geometry);
  if (params_.radius && result.distance > *params_.radius) return std::nullopt;
  if (geometry_json.size() <= kHeldGeometry && held_bytes_ < kHeldGeometries) {
    held_bytes_ += geometry_json.size();
    result.geometry = geometry_json;
  }
  return result;
}

// Empty if the index has another revision of the document, or none.
std::string GeoQuery::read_geometry(kv::Transaction& tx, const IndexKeys& keys, const Result& result) const {
  if (!result.geometry.empty()) return result.geometry;
  RowRange range;
  if (result.number) {
    const std::string key = encoded(std::to_string(*result.number));
    range = {views::row_key_begin(keys, views_.geometries, key, result.id),
             views::row_key_end(keys, views_.geometries, key, result.id)};
  } else {
    range = {result.position, views::rows_after({result.position, result.position}, result.position).begin};
  }
  std::string geometry;
  const std::string revision = json::quoted(result.revision);
  views::visit_stored_rows(tx, keys, result.number ? views_.geometries : result.view, range, false,
                           [&](const views::ViewRow& found) {
                             bool is_same = false;
                             json::for_each_element(found.value, [&](std::string_view element) {
                               is_same |= element == revision;
                               if (is_same && element.starts_with('{')) geometry = element;
                               return is_same;
                             });
                             return false;
                           });
  return geometry;
}

bool GeoQuery::is_first_cell(Cell cell, const std::vector<Cell>& cells) const {
  const auto is_searched = [&](Cell one) {
    auto after = std::ranges::upper_bound(cells_, one, {}, &CellRange::first);
    return after != cells_.begin() && std::prev(after)->contains(one);
  };
  return *std::ranges::find_if(cells, is_searched) == cell;
}

void GeoQuery::append_results(kv::Transaction& tx, const docs::Database& database, std::string& out) {
  const std::size_t size_before = out.size();
  if (!begun_) {
    begun_ = true;
    out += "{\"bookmark\":";
    json::append_string(out, next_bookmark());
    out += params_.format == Format::view ? ",\"rows\":[" : ",\"type\":\"FeatureCollection\",\"features\":[";
  }
  const IndexKeys keys(database, index_->signature());
  for (; written_ < results_.size(); ++written_) {
    if (out.size() - size_before >= kPageBytes) return;
    const auto geometry = read_geometry(tx, keys, results_[written_]);
    if (geometry.empty()) continue;
    out += std::exchange(is_first_, false) ? "\n" : ",\n";
    append_result(tx, database, results_[written_], geometry, out);
  }
  out += is_first_ ? "]}\n" : "\n]}\n";
  ended_ = true;
}

void GeoQuery::append_result(kv::Transaction& tx, const docs::Database& database, const Result& result,
                             std::string_view geometry, std::string& out) const {
  const bool is_row = params_.format == Format::view;
  json::Writer writer(out);
  writer.begin_object().key(is_row ? "id" : "_id").string(result.id);
  writer.key(is_row ? "rev" : "_rev").string(result.revision);
  if (!is_row) writer.key("type").string("Feature").key("properties").raw("{}");
  writer.key("geometry").raw(geometry);
  if (params_.centre) {
    std::string metres;
    json::append_double(metres, result.distance);
    writer.key("distance").raw(metres);
  }
  if (params_.include_docs) {
    writer.key("doc");
    const auto tree = docs::read_tree(tx, database, result.id, kv::Isolation::snapshot);
    if (!tree.empty() && !tree.front().deleted) {
      std::string document;
      docs::append_document(document, result.id, tree.front(), docs::read_body(tx, database, tree.front()),
                            tree, {});
      writer.raw(document);
    } else {
      writer.null();
    }
  }
  writer.end_object();
}

// Without results, the bookmark of the request.
std::string GeoQuery::next_bookmark() const {
  if (results_.empty()) return params_.bookmark.value_or(Bookmark()).encode();
  const auto& last = results_.back();
  return Bookmark{last.position, last.distance, last.id}.encode();
}

}  // namespace divan::index::geo
