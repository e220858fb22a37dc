#include "divan/index/geo/geo_kind.h"

#include <fmt/core.h>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/index/views/js_mapper.h"

namespace divan::index::geo {
namespace {

using views::Collation;
using views::View;

// The version of the rows' layout, and of the choice of cells; part of every signature, so that a change of
// it rebuilds all indexes.
constexpr std::string_view kRowLayout = "spatial rows 5";

Error invalid(const std::string& design_id, std::string_view what) {
  return {400, "invalid_design_doc", fmt::format("`{}` {}", design_id, what)};
}

// The functions by the names of their indexes.
std::map<std::string, std::string> functions_of(const std::string& design_id, std::string_view body) {
  std::map<std::string, std::string> functions;
  const auto object = json::member(body, kKind);
  if (!object || !views::is_javascript(body)) return functions;
  const bool is_object =
      json::for_each_member(*object, [&](std::string_view raw_name, std::string_view value) {
        const std::string name = json::unescape(raw_name);
        const auto source = json::string_value(json::member(value, "index").value_or(""));
        if (name.empty()) throw invalid(design_id, "has a spatial index without a name.");
        if (!source) throw invalid(design_id, fmt::format("has no function `st_indexes.{}.index`.", name));
        functions[name] = *source;
        return true;
      });
  if (!is_object) throw invalid(design_id, "`st_indexes` must be an object.");
  if (functions.size() > js::protocol::kMaxFunctions / 3)
    throw invalid(design_id, "has too many spatial indexes.");
  return functions;
}

std::string signature_of(const std::map<std::string, std::string>& functions, std::string_view lib) {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().string(kRowLayout).string(lib);
  for (const auto& [name, source] : functions) writer.string(name).string(source);
  writer.end_array();
  return sha256(text, kSignatureBytes);
}

}  // namespace

std::shared_ptr<const GeoIndex> parse_geo_indexes(const std::string& design_id, std::string_view body,
                                                  js::Pool& pool, const js::Limits& limits,
                                                  const docs::Database* database,
                                                  std::shared_ptr<views::SlowDocuments> slow) {
  const auto functions = functions_of(design_id, body);
  if (functions.empty()) return nullptr;
  auto origin = views::origin_of(design_id, body, database);
  const auto signature = signature_of(functions, origin.lib);
  std::map<std::string, GeoViews> names;
  std::map<std::string, View> stored;  // three for each index
  std::map<std::string, View> mapped;
  std::vector<std::pair<std::string, GeoViews>> by_function;
  for (const auto& [name, source] : functions) {
    const int number = static_cast<int>(stored.size());
    const GeoViews views{number, number + 1, number + 2};
    names[name] = views;
    by_function.emplace_back(name, views);
    mapped[name] = {.name = name, .map = source};
    for (const auto& [suffix, view] :
         {std::pair("/points", views.points), {"/cells", views.cells}, {"/geometries", views.geometries}}) {
      const std::string view_name = name + suffix;
      stored[view_name] = {.name = view_name, .map = source, .number = view, .collation = Collation::raw};
    }
  }
  auto add = [by_function](views::ViewBatch& batch, std::size_t document, const docs::Change& change,
                           std::size_t function, std::span<const js::Emitted> emitted) {
    const auto& [name, views] = by_function[function];
    add_rows(batch, document, change.winner, name, views, emitted);
  };
  auto mapper = std::make_shared<views::JsMapper>(
      origin, mapped, signature, pool, std::move(slow),
      views::EmittedRows{{"Spatial index", "Index function"}, std::move(add)});
  auto rows = std::make_shared<views::ViewIndex>(std::move(origin), std::move(stored), views::ViewOptions(),
                                                 builds_itself(body, kKind), signature, std::move(mapper),
                                                 pool, limits, views::FanOut());
  return std::make_shared<GeoIndex>(std::move(rows), std::move(names));
}

std::vector<IndexPtr> GeoKind::indexes(const std::string& design_id, std::string_view body,
                                       const docs::Database* database) const {
  if (auto index = parse_geo_indexes(design_id, body, pool_, limits_, database, slow_))
    return {std::move(index)};
  return {};
}

void GeoKind::check(const std::string& design_id, std::string_view body,
                    const docs::Checkpoint& checkpoint) const {
  const auto origin = views::origin_of(design_id, body, nullptr);
  for (const auto& [name, source] : functions_of(design_id, body)) {
    if (checkpoint) checkpoint();
    pool_.check({name, source}, fmt::format("index function in the '{}' spatial index", name), origin.root());
  }
}

}  // namespace divan::index::geo
