#include "divan/index/geo/geo_index.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/json.h"
#include "divan/index/geo/cells.h"
#include "divan/index/geo/geojson.h"
#include "divan/index/views/row_lists.h"
#include "divan/index/views/view_batch.h"

namespace divan::index::geo {
namespace {

void add_geometry(views::ViewBatch& batch, std::size_t document, std::string_view revision,
                  const GeoViews& views, std::int64_t number, std::string_view json) {
  const auto geometry = Geometry::from_geojson(json);
  geometry.check_valid();
  const std::string text = normal_geojson(geometry_of(json));
  // Otherwise the batch would leave out this row, but not those of the cells.
  if (text.size() > kMaxGeometryBytes)
    throw bad_request(fmt::format("Invalid geometry: it takes more than {} bytes", kMaxGeometryBytes));
  const auto cells = covering_cells(geometry);
  std::string whole;
  json::Writer(whole).begin_array().string(revision).raw(text).end_array();
  if (cells.size() == 1) {
    const int view = geometry.is_point() ? views.points : views.cells;
    batch.add_row(document, view, json::quoted(cell_name(cells.front())), whole);
    return;
  }
  std::string value;
  json::Writer writer(value);
  writer.begin_array().string(revision).number(number);
  for (const auto cell : cells) writer.string(cell_name(cell));
  writer.end_array();
  for (const auto cell : cells) batch.add_row(document, views.cells, json::quoted(cell_name(cell)), value);
  batch.add_row(document, views.geometries, std::to_string(number), whole);
}

}  // namespace

IndexPtr GeoIndex::within(const BuildLimits& limits) const {
  return std::make_shared<GeoIndex>(std::dynamic_pointer_cast<const views::ViewIndex>(rows_->within(limits)),
                                    names_);
}

const GeoViews* GeoIndex::find(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

std::int64_t GeoIndex::count_documents(kv::Transaction& tx, const IndexKeys& keys,
                                       const GeoViews& views) const {
  std::int64_t count = 0;
  const bool is_only = names_.size() == 1;
  const std::string lists = keys.part(views::kDocumentsPart);
  tx.scan(kv::below(lists), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            kv::tuple::Reader reader(key.substr(lists.size()));
            const auto id = reader.take_string();
            if (reader.take_int() != 0) return true;  // not its first chunk
            bool has_rows = is_only;
            if (!is_only) {
              const auto rows =
                  views::read_list(tx, keys, id.value_or(""), std::string(value), 3 * names_.size());
              has_rows = std::ranges::any_of(
                  rows, [&](const auto& row) { return row.view == views.points || row.view == views.cells; });
            }
            if (has_rows) ++count;
            return count < kMaxCounted;
          });
  return count;
}

void add_rows(views::ViewBatch& batch, std::size_t document, const docs::Revision& revision,
              const std::string& name, const GeoViews& views, std::span<const js::Emitted> emitted) {
  const auto text = revision.to_string();
  std::int64_t number = 0;
  for (const auto& [geometry, unused] : emitted) {
    try {
      add_geometry(batch, document, text, views, number++, geometry);
    } catch (const Error& error) {
      batch.add_failure(document, fmt::format("Spatial index `{}`: {}", name, error.reason()));
    }
  }
}

}  // namespace divan::index::geo
