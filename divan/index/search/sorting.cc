#include "divan/index/search/sorting.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "divan/base/json.h"
#include "divan/index/search/query_parser.h"

namespace divan::index::search {
namespace {

// The radii of the Earth with which CouchDB's search computes.
constexpr double kEarthKilometres = 6'378.137;
constexpr double kEarthMiles = 3'963.190'592'135;

[[noreturn]] void throw_unknown(std::string_view text) {
  throw bad_request(fmt::format("Unrecognized sort parameter: {}", text));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void parse_distance(std::string_view text, SortField& sort) {
  const auto parts = split(text, ',');
  if ((parts.size() != 5 && parts.size() != 6) || !parse_query_number(parts[3], false, sort.longitude) ||
      !parse_query_number(parts[4], false, sort.latitude) || parts[1].empty() || parts[2].empty())
    throw bad_request(
        fmt::format("Unrecognized sort parameter: <{}>. Expected <distance,longitude field,"
                    "latitude field,longitude,latitude,km or mi>.",
                    text));
  sort.field = parts[1];
  sort.latitude_field = parts[2];
  if (parts.size() == 5) return;
  sort.is_in_miles = parts[5] == "mi";
  if (!sort.is_in_miles && parts[5] != "km")
    throw bad_request(fmt::format("The unit of a distance must be km or mi, not {}.", parts[5]));
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// By the haversine formula, on a sphere.
double distance(const SortField& sort, double longitude, double latitude) {
  const double x = std::sin(radians(latitude - sort.latitude) / 2);
  const double y = std::sin(radians(longitude - sort.longitude) / 2);
  const double h = x * x + std::cos(radians(latitude)) * std::cos(radians(sort.latitude)) * y * y;
  return 2 * (sort.is_in_miles ? kEarthMiles : kEarthKilometres) * std::asin(std::min(1.0, std::sqrt(h)));
}

}  // namespace

SortField SortField::parse(std::string_view text) {
  SortField sort;
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+')) {
    sort.is_descending = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest == "<score>") return sort;
  if (rest == "<doc>") {
    sort.kind = Kind::document;
    return sort;
  }
  if (rest.starts_with("<distance,") && rest.ends_with('>')) {
    sort.kind = Kind::distance;
    parse_distance(rest.substr(1, rest.size() - 2), sort);
    return sort;
  }
  sort.kind = Kind::number;
  if (rest.ends_with('>')) {
    const auto begin = rest.rfind('<');
    if (begin == std::string_view::npos) throw_unknown(text);
    const auto type = rest.substr(begin + 1, rest.size() - begin - 2);
    if (type == "string") {
      sort.kind = Kind::string;
    } else if (type != "number") {
      throw bad_request(fmt::format("Unrecognized type: {}", type));
    }
    rest = rest.substr(0, begin);
  }
  if (rest.empty()) throw_unknown(text);
  sort.field = rest;
  return sort;
}

Sorter::Sorter(Searcher& searcher, const Matches& matches, const std::vector<SortField>& fields)
    : matches_(matches) {
  if (fields.empty()) {
    descending_.push_back(true);
    kinds_.push_back(SortField::Kind::score);
    values_.push_back(read(searcher, {}));
  }
  for (const auto& field : fields) {
    descending_.push_back(field.is_descending);
    kinds_.push_back(field.kind);
    values_.push_back(read(searcher, field));
  }
}

std::vector<SortValue> Sorter::read(Searcher& searcher, const SortField& field) {
  std::vector<SortValue> values(matches_.size());
  searcher.spend(values.size());
  switch (field.kind) {
    case SortField::Kind::score:
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = matches_[i].score;
      return values;
    case SortField::Kind::document:
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(matches_[i].number);
      return values;
    case SortField::Kind::string: return read_strings(searcher, matches_, field.field);
    case SortField::Kind::number: return read_numbers(searcher, field.field);
    case SortField::Kind::distance: break;
  }
  const auto longitudes = read_numbers(searcher, field.field);
  const auto latitudes = read_numbers(searcher, field.latitude_field);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* const longitude = std::get_if<double>(&longitudes[i]);
    const auto* const latitude = std::get_if<double>(&latitudes[i]);
    if (longitude != nullptr && latitude != nullptr) values[i] = distance(field, *longitude, *latitude);
  }
  return values;
}

std::vector<SortValue> Sorter::read_numbers(Searcher& searcher, const std::string& field) {
  std::vector<SortValue> values(matches_.size());
  bool has_numbers = false;
  searcher.visit_column(Column::numbers, field, [&](DocumentNumber number, std::string_view payload) {
    const Match* const match = find(matches_, number);
    const auto numbers = match ? decode_numbers(payload) : std::vector<double>();
    if (numbers.empty()) return;
    has_numbers = true;
    values[static_cast<std::size_t>(match - matches_.data())] = numbers.back();
  });
  const auto has_string = [](const SortValue& value) { return std::holds_alternative<std::string>(value); };
  if (!has_numbers && std::ranges::any_of(read_strings(searcher, matches_, field), has_string))
    throw bad_request(fmt::format(
        "cannot sort string field as numeric field: `{}`; `{}<string>` sorts by strings", field, field));
  return values;
}

std::vector<SortValue> read_strings(Searcher& searcher, const Matches& matches, std::string_view field) {
  std::vector<SortValue> values(matches.size());
  searcher.visit_column(Column::strings, field, [&](DocumentNumber number, std::string_view payload) {
    const Match* const match = find(matches, number);
    if (match == nullptr) return;
    auto strings = decode_strings(payload);
    if (!strings.empty())
      values[static_cast<std::size_t>(match - matches.data())] = std::move(strings.back());
  });
  return values;
}

bool Sorter::is_before(std::size_t a, std::size_t b) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& x = values_[i][a];
    const auto& y = values_[i][b];
    const auto *const p = std::get_if<double>(&x), *const q = std::get_if<double>(&y);
    if (p != nullptr && q != nullptr) {  // the same, but faster
      if (*p != *q) return descending_[i] ? *q < *p : *p < *q;
    } else if (x != y) {
      return descending_[i] ? y < x : x < y;
    }
  }
  return a < b;  // matches are in the order of their numbers
}

bool Sorter::is_after(std::size_t match, const Bookmark& bookmark) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& x = values_[i][match];
    const auto& y = bookmark.values[i];
    if (x != y) return descending_[i] ? x < y : y < x;
  }
  return matches_[match].number > bookmark.number;
}

Sorter::Indices Sorter::after(const std::optional<Bookmark>& bookmark) const {
  Indices indices(matches_.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  if (!bookmark || bookmark->values.empty()) return indices;
  const auto is_of = [](const SortValue& value, SortField::Kind kind) {
    if (kind == SortField::Kind::string) return !std::holds_alternative<double>(value);
    if (std::holds_alternative<double>(value)) return true;
    const bool always_has_one = kind == SortField::Kind::score || kind == SortField::Kind::document;
    return !always_has_one && std::holds_alternative<std::monostate>(value);
  };
  bool is_compatible = bookmark->values.size() == values_.size();
  for (std::size_t i = 0; is_compatible && i < values_.size(); ++i)
    is_compatible = is_of(bookmark->values[i], kinds_[i]);
  if (!is_compatible) throw bad_request("sort order not compatible with given bookmark");
  std::erase_if(indices, [&](std::size_t index) { return !is_after(index, *bookmark); });
  return indices;
}

void Sorter::sort(Indices& indices, std::size_t first, std::size_t count) const {
  const auto begin = indices.begin() + static_cast<std::ptrdiff_t>(first);
  const auto sorted = std::min(count, indices.size() - first);
  std::partial_sort(begin, begin + static_cast<std::ptrdiff_t>(sorted), indices.end(),
                    [&](std::size_t a, std::size_t b) { return is_before(a, b); });
}

std::vector<SortValue> Sorter::values(std::size_t match) const {
  std::vector<SortValue> values;
  for (const auto& column : values_) values.push_back(column[match]);
  return values;
}

}  // namespace divan::index::search
