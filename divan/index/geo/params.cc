#include "divan/index/geo/params.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::index::geo {
namespace {

Error invalid(std::string reason) { return {400, "query_parse_error", std::move(reason)}; }

Error invalid_value(std::string_view name, std::string_view value, std::string_view expected) {
  return invalid(fmt::format("Invalid value for {}: {}. Expected {}.", name, json::quoted(value), expected));
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

double number(std::string_view name, std::string_view text) {
  const auto value = parse_number(text);
  if (!value) throw invalid_value(name, text, "a number");
  return *value;
}

bool boolean(std::string_view name, std::string_view text) {
  if (text != "true" && text != "false") throw invalid_value(name, text, "true or false");
  return text == "true";
}

std::uint64_t count(std::string_view name, std::string_view text, std::uint64_t most) {
  const auto value = json::int_value(text);
  if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > most)
    throw invalid_value(name, text, fmt::format("an integer from 0 to {}", most));
  return static_cast<std::uint64_t>(*value);
}

Geometry parse_bbox(std::string_view text) {
  std::vector<double> bounds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    bounds.push_back(number("bbox", text.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (bounds.size() != 4)
    throw invalid_value("bbox", text, "four numbers: the western, southern, eastern and northern bounds");
  return Geometry::rectangle({bounds[0], bounds[1], bounds[2], bounds[3]});
}

Geometry parse_geometry(const std::string& text) {
  const auto geometry =
      text.starts_with('{') ? Geometry::from_geojson(json::compact(text)) : Geometry::from_wkt(text);
  geometry.check_valid();
  return geometry;
}

views::Update parse_update(std::string_view name, std::string_view text) {
  if (name == "stale" && text == "ok") return views::Update::never;
  if (name == "stale" && text == "update_after") return views::Update::lazy;
  if (name == "update" && text == "true") return views::Update::wait;
  if (name == "update" && text == "false") return views::Update::never;
  if (name == "update" && text == "lazy") return views::Update::lazy;
  throw invalid_value(name, text, name == "stale" ? "ok or update_after" : "true, false or lazy");
}

Format parse_format(std::string_view text) {
  if (text == "view") return Format::view;
  if (text == "geojson" || text == "legacy" || text == "application/vnd.geo+json") return Format::geojson;
  throw invalid_value("format", text, "view, geojson, legacy or application/vnd.geo+json");
}

// The parameters that describe the geometry, before they are combined.
struct Parts {
  std::optional<Geometry> bbox, g;
  std::optional<double> latitude, longitude, radius, range_x, range_y;
  std::optional<Relation> relation;
};

void set(GeoParams& params, Parts& parts, const std::string& name, const std::string& text) {
  if (name == "bbox") {
    parts.bbox = parse_bbox(text);
  } else if (name == "g") {
    parts.g = parse_geometry(text);
  } else if (name == "lat") {
    parts.latitude = number(name, text);
  } else if (name == "lon") {
    parts.longitude = number(name, text);
  } else if (name == "radius") {
    parts.radius = number(name, text);
  } else if (name == "rangex") {
    parts.range_x = number(name, text);
  } else if (name == "rangey") {
    parts.range_y = number(name, text);
  } else if (name == "relation") {
    parts.relation = find_relation(text);
    if (!parts.relation)
      throw invalid_value(name, text,
                          "contains, covered_by, covers, crosses, disjoint, equals, intersects, overlaps, "
                          "touches or within");
  } else if (name == "nearest") {
    params.nearest = boolean(name, text);
  } else if (name == "limit") {
    params.limit = count(name, text, kMaxLimit);
  } else if (name == "skip") {
    params.skip = count(name, text, INT64_MAX);
  } else if (name == "include_docs") {
    params.include_docs = boolean(name, text);
  } else if (name == "format") {
    params.format = parse_format(text);
  } else if (name == "stale" || name == "update") {
    params.update = parse_update(name, text);
  } else if (name == "bookmark") {
    params.bookmark = Bookmark::decode(text);
  }
}

// A circle as a polygon is not exact. What intersects a circle is decided by distances; then the polygon only
// says where to search, and is larger.
void use_radius(GeoParams& params, double radius) {
  constexpr double kLarger = 1.01;
  if (params.relation != Relation::intersects) {
    params.geometry = Geometry::ellipse(*params.centre, radius, radius);
    return;
  }
  if (!(radius > 0))
    throw invalid_value("radius", fmt::format("{}", radius), "a number of metres greater than 0");
  params.radius = radius;
  if (radius * kLarger <= kMaxRange)
    params.geometry = Geometry::ellipse(*params.centre, radius * kLarger, radius * kLarger);
}

void combine(GeoParams& params, Parts parts) {
  if (parts.latitude.has_value() != parts.longitude.has_value())
    throw invalid("`lat` and `lon` are needed together.");
  if (parts.range_x.has_value() != parts.range_y.has_value())
    throw invalid("`rangex` and `rangey` are needed together.");
  if (parts.latitude) {
    params.centre = Position{*parts.longitude, *parts.latitude};
    check_position(*params.centre);
  }
  const int shapes =
      (parts.bbox ? 1 : 0) + (parts.g ? 1 : 0) + (parts.radius ? 1 : 0) + (parts.range_x ? 1 : 0);
  if (shapes > 1)
    throw invalid("Only one of `bbox`, `g`, `radius`, and `rangex` with `rangey` can be given.");
  if ((parts.radius || parts.range_x) && !params.centre)
    throw invalid("`radius`, `rangex` and `rangey` need `lat` and `lon`.");
  params.relation = parts.relation.value_or(Relation::intersects);
  if (parts.bbox) params.geometry = std::move(parts.bbox);
  if (parts.g) params.geometry = std::move(parts.g);
  if (parts.range_x) params.geometry = Geometry::ellipse(*params.centre, *parts.range_x, *parts.range_y);
  if (parts.radius) use_radius(params, *parts.radius);
  if (params.nearest) {
    if (!params.centre && params.geometry) params.centre = params.geometry->middle();
    // A point is only where distances are measured from.
    if (params.geometry && params.geometry->is_point() && !parts.relation) params.geometry.reset();
    if (params.skip > kMaxSkippedNearest)
      throw invalid_value("skip", std::to_string(params.skip),
                          fmt::format("at most {} with `nearest`; use `bookmark`", kMaxSkippedNearest));
    if (!params.centre) throw invalid("`nearest` needs `g`, `bbox`, or `lat` and `lon`.");
  } else if (!params.geometry && !params.radius) {
    throw invalid("One of `bbox`, `g`, `radius`, or `rangex` with `rangey` is needed.");
  }
}

}  // namespace

std::string Bookmark::encode() const {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().string(to_base64url(position));
  std::string number;
  json::append_double(number, distance);
  writer.raw(number).string(id).end_array();
  return to_base64url(text);
}

Bookmark Bookmark::decode(std::string_view text) {
  try {
    const auto bytes = from_base64url(text);
    if (!bytes) throw bad_request("not base64");
    const std::string json = json::compact(*bytes);
    std::vector<std::string_view> values;
    json::for_each_element(json, [&](std::string_view value) {
      values.push_back(value);
      return true;
    });
    if (values.size() != 3) throw bad_request("incomplete");
    const auto position = json::string_value(values[0]), id = json::string_value(values[2]);
    const auto distance = parse_number(values[1]);
    const auto decoded = position ? from_base64url(*position) : std::nullopt;
    if (!decoded || !id || !distance) throw bad_request("malformed");
    return {*decoded, *distance, *id};
  } catch (const Error&) { throw invalid("Invalid bookmark: " + json::quoted(text)); }
}

GeoParams parse_params(const GeoParamTexts& texts) {
  GeoParams params;
  Parts parts;
  for (const auto& [name, text] : texts) set(params, parts, name, text);
  combine(params, std::move(parts));
  return params;
}

GeoParamTexts params_of_body(std::string_view json) {
  GeoParamTexts texts;
  const bool is_object = json::for_each_member(json, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (value == "null") return true;
    std::string text(value);
    if (auto string = json::string_value(value)) text = *std::move(string);
    if (name == "bbox" && value.starts_with('[')) text = value.substr(1, value.size() - 2);
    texts.emplace_back(name, std::move(text));
    return true;
  });
  if (!is_object) throw bad_request("Request body must be a JSON object");
  return texts;
}

}  // namespace divan::index::geo
