#include "divan/mango/find_request.h"

#include <fmt/core.h>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/docs/partition.h"
#include "divan/mango/options.h"

namespace divan::mango {
namespace {

selector::Selector parse_selector(std::string_view json) {
  if (!json.starts_with('{'))
    throw Error(400, "invalid_selector_json", fmt::format("Selector must be a JSON object, not: {}", json));
  return selector::Selector::parse(json, selector::TextOperator::allowed);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string parse_bookmark(std::string_view json) {
  if (json == "null") return {};
  const auto text = json::string_value(json);
  if (!text) throw Error(400, "invalid_bookmark", fmt::format("Invalid bookmark value: {}", json));
  return *text;
}

std::optional<std::vector<std::string>> parse_fields(std::string_view json) {
  std::vector<std::string> fields;
  const bool is_array = json::for_each_element(json, [&](std::string_view element) {
    const auto field = json::string_value(element);
    if (!field) throw Error(400, "invalid_field", fmt::format("Invalid JSON for field spec: {}", element));
    selector::parse_path(*field);
    fields.push_back(*field);
    return true;
  });
  if (!is_array)
    throw Error(400, "invalid_fields", fmt::format("Fields must be an array of strings, not: {}", json));
  if (fields.size() > kMaxFields)
    throw Error(400, "invalid_fields", fmt::format("There are more than {} fields.", kMaxFields));
  if (fields.empty()) return std::nullopt;
  return fields;
}

bool parse_stale(std::string_view json) {
  if (json == "\"ok\"") return true;
  if (json == "\"false\"" || json == "false") return false;
  throw Error(400, "invalid_ok_or_false_value", fmt::format("Invalid value for `stale`: {}", json));
}

}  // namespace

std::string design_id(std::string_view name) {
  return docs::is_design(name) ? std::string(name) : std::string(docs::kDesignPrefix) + std::string(name);
}

std::vector<std::string> parse_index_name(std::string_view json) {
  const Error invalid{400, "invalid_index_name", fmt::format("Invalid index name: {}", json)};
  if (json == "null") return {};
  std::vector<std::string> parts;
  if (const auto text = json::string_value(json)) {
    parts = split(*text, '/');
    if (parts.size() > 1 && parts[0] == "_design") parts.erase(parts.begin());
  } else {
    const bool is_array = json::for_each_element(json, [&](std::string_view element) {
      const auto part = json::string_value(element);
      if (!part) throw Error(invalid);
      parts.push_back(*part);
      return true;
    });
    if (is_array && parts.empty()) return {};
  }
  if (parts.empty() || parts.size() > 2) throw Error(invalid);
  return parts;
}

FindRequest FindRequest::parse(std::string_view json, std::uint64_t default_limit) {
  Options options(json);
  FindRequest request{.selector = parse_selector(options.require("selector"))};
  if (const auto value = options.find("use_index")) request.use_index = parse_index_name(*value);
  if (const auto value = options.find("bookmark")) request.bookmark = parse_bookmark(*value);
  request.limit = options.integer("limit", default_limit);
  request.skip = options.integer("skip", 0);
  if (const auto value = options.find("sort")) request.sort = Sort::parse(*value);
  if (const auto value = options.find("fields")) request.fields = parse_fields(*value);
  request.partition = options.string("partition").value_or("");
  if (!request.partition.empty()) docs::check_partition(request.partition);
  request.r = options.integer("r", 1, 1);
  request.conflicts = options.boolean("conflicts", false);
  if (const auto value = options.find("stale")) request.stale_ok = parse_stale(*value);
  request.update = options.boolean("update", true);
  request.stable = options.boolean("stable", false);
  request.execution_stats = options.boolean("execution_stats", false);
  request.allow_fallback = options.boolean("allow_fallback", true);
  options.end();
  return request;
}

std::string FindRequest::wanted_design() const { return design_id(use_index.front()); }

}  // namespace divan::mango
