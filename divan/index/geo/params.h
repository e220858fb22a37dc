// The parameters of a spatial query, as of Cloudant's geospatial queries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "divan/index/geo/matcher.h"
#include "divan/index/views/params.h"

namespace divan::index::geo {

enum class Format {
  view,     ///< rows with `id`, `rev` and `geometry`
  geojson,  ///< a FeatureCollection
};

inline constexpr std::uint64_t kDefaultLimit = 100;
inline constexpr std::uint64_t kMaxLimit = 200;
/// All nearer results are held in memory.
inline constexpr std::uint64_t kMaxSkippedNearest = 10'000;

/// Where in the results a page begins.
struct Bookmark {
  std::string position{};  ///< of the last result's row (views::ViewRow); empty: at the beginning
  double distance = 0;     ///< of the last result
  std::string id{};        ///< of its document

  std::string encode() const;
  /// Throws bad_request unless the text was encoded by encode().
  static Bookmark decode(std::string_view text);
};

/// What is searched.
struct GeoParams {
  std::optional<Geometry> geometry;  ///< of the query; with `radius` only where to search
  Relation relation = Relation::intersects;
  std::optional<Position> centre;  ///< of a circle, or of the nearest results
  std::optional<double> radius;    ///< in metres: results are no farther from the centre
  bool nearest = false;            ///< sorted by distance from the centre
  std::uint64_t limit = kDefaultLimit;
  std::uint64_t skip = 0;
  bool include_docs = false;
  Format format = Format::view;
  views::Update update = views::Update::wait;
  std::optional<Bookmark> bookmark;
};

/// Parameters of a URL or of a body, by name; their values are texts, but `g` may be GeoJSON.
using GeoParamTexts = std::vector<std::pair<std::string, std::string>>;

/// Throws query_parse_error or bad_request (400) if a value is invalid, or if the parameters do not describe
/// a search. Ignores unknown names.
GeoParams parse_params(const GeoParamTexts& texts);

/// The parameters of a request's body, a JSON object: numbers, booleans, strings; `bbox` may be an array, and
/// `g` a GeoJSON object. Throws bad_request.
GeoParamTexts params_of_body(std::string_view json);

}  // namespace divan::index::geo
