#include "divan/index/geo/geojson.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::index::geo {
namespace {

constexpr std::string_view kCollection = "GeometryCollection";
constexpr int kMaxNestedCollections = 8;

std::string shortened(std::string_view json) {
  constexpr std::size_t kMost = 60;
  return json.size() <= kMost ? std::string(json) : std::string(json.substr(0, kMost)) + "...";
}

Error invalid(std::string_view what, std::string_view json) {
  return bad_request(fmt::format("Invalid geometry: {}: {}", what, shortened(json)));
}

class Parser {
 public:
  std::vector<Part> parse(std::string_view json) {
    add(json, 0);
    if (parts_.empty()) throw invalid("it is empty", json);
    return std::move(parts_);
  }

 private:
  void add(std::string_view json, int depth) {
    const auto type_json = json.starts_with('{') ? json::member(json, "type") : std::nullopt;
    const auto type = type_json ? json::string_value(*type_json) : std::nullopt;
    if (!type) throw invalid("it is not an object with a `type`", json);
    if (*type == kCollection) {
      if (depth == kMaxNestedCollections) throw invalid("collections are nested too deeply", json);
      for_each(json::member(json, "geometries").value_or(""), "`geometries`",
               [&](std::string_view one) { add(one, depth + 1); });
      return;
    }
    const std::string_view coordinates = json::member(json, "coordinates").value_or("null");
    const auto each = [&](auto add_part) {
      for_each(coordinates, "`coordinates`", [&](std::string_view one) { (this->*add_part)(one); });
    };
    if (*type == "Point") {
      add_point(coordinates);
    } else if (*type == "MultiPoint") {
      each(&Parser::add_point);
    } else if (*type == "LineString") {
      add_line(coordinates);
    } else if (*type == "MultiLineString") {
      each(&Parser::add_line);
    } else if (*type == "Polygon") {
      add_polygon(coordinates);
    } else if (*type == "MultiPolygon") {
      each(&Parser::add_polygon);
    } else {
      throw invalid("unknown `type`", json);
    }
  }

  template <class Visit>
  static void for_each(std::string_view array, std::string_view what, const Visit& visit) {
    const bool is_array = json::for_each_element(array, [&](std::string_view element) {
      visit(element);
      return true;
    });
    if (!is_array) throw invalid(fmt::format("{} must be an array", what), array);
  }

  static double number(std::string_view json) {
    double value = 0;
    const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), value);
    if (error != std::errc() || end != json.data() + json.size() || !std::isfinite(value))
      throw invalid("a coordinate must be a number", json);
    return value;
  }

  // Further coordinates, such as the altitude, are ignored.
  Position position(std::string_view json) {
    if (++positions_ > kMaxPositions)
      throw bad_request(fmt::format("Invalid geometry: it has more than {} positions", kMaxPositions));
    double values[2] = {};
    std::size_t count = 0;
    for_each(json, "a position", [&](std::string_view coordinate) {
      const double value = number(coordinate);
      if (count < 2) values[count] = value;
      ++count;
    });
    if (count < 2) throw invalid("a position must have a longitude and a latitude", json);
    const Position position{values[0], values[1]};
    check_position(position);
    return position;
  }

  std::vector<Position> positions(std::string_view json) {
    std::vector<Position> all;
    for_each(json, "a line or ring", [&](std::string_view one) { all.push_back(position(one)); });
    return all;
  }

  void add_point(std::string_view json) { parts_.push_back({Part::Kind::point, {{position(json)}}}); }

  void add_line(std::string_view json) {
    auto line = positions(json);
    if (line.size() < 2) throw invalid("a line must have two positions or more", json);
    parts_.push_back({Part::Kind::line, {std::move(line)}});
  }

  void add_polygon(std::string_view json) {
    Part part{Part::Kind::polygon, {}};
    for_each(json, "a polygon", [&](std::string_view one) {
      auto ring = positions(one);
      if (ring.size() < 4) throw invalid("a ring must have four positions or more", one);
      if (ring.front() != ring.back()) throw invalid("a ring must end where it begins", one);
      part.rings.push_back(std::move(ring));
    });
    if (part.rings.empty()) throw invalid("a polygon must have a ring", json);
    parts_.push_back(std::move(part));
  }

  std::vector<Part> parts_;
  std::size_t positions_ = 0;
};

}  // namespace

std::string_view geometry_of(std::string_view json) {
  if (json::member(json, "type") != "\"Feature\"") return json;
  const auto geometry = json::member(json, "geometry");
  if (!geometry || !geometry->starts_with('{')) throw invalid("a Feature has no geometry", json);
  return *geometry;
}

std::string normal_geojson(std::string_view json) {
  std::string out;
  json::Writer writer(out);
  const auto type = json::member(json, "type").value_or("null");
  writer.begin_object().key("type").raw(type);
  if (json::string_value(type) == kCollection) {
    writer.key("geometries").begin_array();
    json::for_each_element(json::member(json, "geometries").value_or(""), [&](std::string_view one) {
      writer.raw(normal_geojson(one));
      return true;
    });
    writer.end_array();
  } else {
    writer.key("coordinates").raw(json::member(json, "coordinates").value_or("null"));
  }
  writer.end_object();
  return out;
}

std::vector<Part> parse_geojson(std::string_view json) { return Parser().parse(json); }

}  // namespace divan::index::geo
