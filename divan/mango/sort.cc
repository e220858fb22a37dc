#include "divan/mango/sort.h"

#include <fmt/core.h>

#include <optional>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::mango {
namespace {

struct Parsed {
  std::string name;
  bool descending = false;
};

Parsed parse_field(std::string_view json) {
  const Error invalid{400, "invalid_sort_field", "Invalid sort field: " + std::string(json)};
  if (const auto name = json::string_value(json)) {
    if (name->empty()) throw Error(invalid);
    return {*name};
  }
  std::optional<Parsed> field;
  std::size_t members = 0;
  json::for_each_member(json, [&](std::string_view name, std::string_view value) {
    ++members;
    if (value == "\"asc\"" || value == "\"desc\"") field = {json::unescape(name), value == "\"desc\""};
    return true;
  });
  if (members != 1 || !field) throw Error(invalid);
  return *field;
}

}  // namespace

Sort Sort::parse(std::string_view json) {
  Sort sort;
  bool is_mixed = false;
  const bool is_array = json::for_each_element(json, [&](std::string_view element) {
    auto field = parse_field(element);
    is_mixed = is_mixed || (!sort.fields.empty() && field.descending != sort.descending);
    sort.descending = field.descending;
    auto path = selector::parse_path(field.name);
    sort.fields.push_back({std::move(field.name), std::move(path)});
    return true;
  });
  if (!is_array)
    throw Error(400, "invalid_sort_json", "Sort must be an array of sort specs, not: " + std::string(json));
  if (sort.fields.size() > kMaxSortFields)
    throw Error(400, "invalid_sort_json", fmt::format("Sort must have at most {} fields.", kMaxSortFields));
  if (is_mixed)
    throw Error(400, "unsupported_mixed_sort",
                "Sorts currently only support a single direction for all fields.");
  return sort;
}

std::vector<selector::Path> Sort::paths() const {
  std::vector<selector::Path> paths;
  for (const auto& field : fields) paths.push_back(field.path);
  return paths;
}

}  // namespace divan::mango
