#include "divan/index/views/field_map.h"

#include <fmt/core.h>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::index::views {
namespace {

Error invalid(std::string reason) { return {400, "invalid_index", std::move(reason)}; }

// The filter, unless it is {} or missing.
std::string filter_of(std::string_view map) {
  for (const auto* name : {"partial_filter_selector", "selector"}) {
    const auto filter = json::member(map, name);
    if (filter && *filter != "{}") return std::string(*filter);
  }
  return {};
}

}  // namespace

bool is_query(std::string_view body) {
  const auto language = json::member(body, "language");
  return language && json::string_value(*language) == kQueryLanguage;
}

FieldMap FieldMap::parse(std::string_view json) {
  FieldMap map;
  const auto fields = json::member(json, "fields");
  const bool is_object =
      fields && json::for_each_member(*fields, [&](std::string_view raw_name, std::string_view value) {
        const std::string name = json::unescape(raw_name);
        const auto direction = json::string_value(value);
        if (!direction || (*direction != "asc" && *direction != "desc"))
          throw invalid(fmt::format("The direction of the field `{}` must be `asc` or `desc`.", name));
        map.fields.push_back({name, *direction, selector::parse_path(name)});
        return true;
      });
  if (!is_object) throw invalid("`fields` must be an object of fields and their directions.");
  if (map.fields.size() > kMaxIndexFields)
    throw invalid(fmt::format("An index has at most {} fields.", kMaxIndexFields));
  map.filter_json = filter_of(json);
  if (!map.filter_json.empty()) map.filter = selector::Selector::parse(map.filter_json);
  return map;
}

std::optional<std::string> FieldMap::key_of(std::string_view document) const {
  std::string key = "[";
  for (const auto& field : fields) {
    const auto value = selector::find_field(field.path, document);
    if (!value) return std::nullopt;
    if (key.size() > 1) key += ',';
    key += *value;
  }
  if (filter && !filter->matches(document)) return std::nullopt;
  return key + "]";
}

}  // namespace divan::index::views
