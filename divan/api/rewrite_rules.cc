#include "divan/api/rewrite_rules.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"

namespace divan::api {
namespace {

// The value of a variable: JSON, so that a format can make it a number.
struct Variable {
  std::string name;
  std::string value;
};
using Variables = std::vector<Variable>;

struct Rule {
  std::string method;
  std::vector<std::string> from;
  std::vector<std::string> to;
  json::Members query;
  json::Members formats;
};

constexpr std::string_view kRest = "*";
constexpr std::size_t kMaxParents = 2;
// They are parsed for each request.
constexpr std::size_t kMaxRulesBytes = 64 << 10;

Error invalid_rule(std::string_view rule, std::string_view why) {
  return {500, "rewrite_error", fmt::format("The rule {} is invalid: {}.", rule.substr(0, 1000), why)};
}

void check_target_size(std::size_t bytes) {
  if (bytes <= kMaxRewrittenBytes) return;
  throw Error(500, "rewrite_error",
              fmt::format("The path and the query that the rules make exceed {} bytes.", kMaxRewrittenBytes));
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    const auto size = std::min(path.find('/'), path.size());
    if (size > 0) segments.emplace_back(path.substr(0, size));
    path.remove_prefix(std::min(size + 1, path.size()));
  }
  return segments;
}

void check_secure(const std::vector<std::string>& segments) {
  if (static_cast<std::size_t>(std::ranges::count(segments, "..")) > kMaxParents)
    throw Error(500, "insecure_rewrite_rule", "too many ../.. segments");
}

Rule parse_rule(std::string_view json, bool is_secure) {
  const auto members = json::members_of(json);
  const auto text = [&](std::string_view name) -> std::optional<std::string> {
    const auto value = json::find(members, name);
    if (!value) return std::nullopt;
    auto string = json::string_value(*value);
    if (!string) throw invalid_rule(json, fmt::format("`{}` is not a string", name));
    return string;
  };
  const auto object = [&](std::string_view name) {
    const auto value = json::find(members, name).value_or("{}");
    if (!value.starts_with('{')) throw invalid_rule(json, fmt::format("`{}` is not an object", name));
    return json::members_of(value);
  };
  const auto to = text("to");
  if (!to) throw invalid_rule(json, "it has no `to`");
  Rule rule{.method = text("method").value_or(std::string(kRest)),
            .from = split_path(text("from").value_or(std::string(kRest))),
            .to = split_path(*to),
            .query = object("query"),
            .formats = object("formats")};
  if (is_secure) {
    check_secure(rule.from);
    check_secure(rule.to);
  }
  return rule;
}

std::optional<std::string_view> variable_name(std::string_view text) {
  if (text == kRest) return text;
  if (text.starts_with(':')) return text.substr(1);
  return std::nullopt;
}

// CouchDB parses the values of these parameters.
bool is_json_parameter(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"key",    "startkey", "start_key",
                                                      "endkey", "end_key",  "keys"};
  return std::ranges::find(kNames, name) != kNames.end();
}

std::string text_of(const std::string& json) { return json::string_value(json).value_or(json); }

// The variables that the path gives; nullopt if it does not match.
std::optional<Variables> match(const std::vector<std::string>& from, const std::vector<std::string>& path) {
  Variables variables;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == kRest && i + 1 == from.size()) {
      const std::vector<std::string> rest(path.begin() + static_cast<std::ptrdiff_t>(i), path.end());
      variables.push_back({std::string(kRest), json::quoted(fmt::format("{}", fmt::join(rest, "/")))});
      return variables;
    }
    if (i >= path.size()) return std::nullopt;
    if (const auto name = variable_name(from[i])) {
      variables.push_back({std::string(*name), json::quoted(path[i])});
    } else if (from[i] != path[i]) {
      return std::nullopt;
    }
  }
  if (path.size() > from.size()) return std::nullopt;
  return variables;
}

const std::string* find(const Variables& variables, std::string_view name) {
  const auto found =
      std::ranges::find_if(variables, [&](const Variable& variable) { return variable.name == name; });
  return found == variables.end() ? nullptr : &found->value;
}

std::string formatted(const std::string& value, std::optional<std::string_view> format) {
  const auto text = json::string_value(value);
  if (!text || !format) return value;
  if (*format == "\"int\"") {
    std::int64_t number = 0;
    const auto* const end = text->data() + text->size();
    const auto parsed = std::from_chars(text->data(), end, number);
    if (!text->empty() && parsed.ec == std::errc() && parsed.ptr == end) return std::to_string(number);
  } else if (*format == "\"bool\"") {
    std::string lower = *text;
    std::ranges::transform(lower, lower.begin(),
                           [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c); });
    if (lower == "true" || lower == "false") return lower;
  }
  return value;
}

// The value of a parameter of the rule, in which variables are replaced.
std::string replaced(const Rule& rule, std::string_view value, const Variables& variables) {
  const auto replace = [&](std::string_view json) {
    const auto text = json::string_value(json);
    const auto name = text ? variable_name(*text) : std::nullopt;
    const std::string* const found = name ? find(variables, *name) : nullptr;
    return found == nullptr ? std::string(json) : formatted(*found, json::find(rule.formats, *name));
  };
  if (!value.starts_with('[')) return replace(value);
  std::string array = "[";
  json::for_each_element(value, [&](std::string_view element) {
    if (array.size() > 1) array += ',';
    array += replace(element);
    check_target_size(array.size());
    return true;
  });
  return array + "]";
}

std::string new_path(const Rule& rule, const Variables& variables, const std::vector<std::string>& rest) {
  std::vector<std::string> path;
  std::size_t bytes = 0;
  for (const auto& segment : rule.to) {
    if (segment == kRest) {
      path.insert(path.end(), rest.begin(), rest.end());
      break;
    }
    check_target_size(bytes);
    const auto name = variable_name(segment);
    const std::string* const value = name ? find(variables, *name) : nullptr;
    path.push_back(!name ? segment : value == nullptr ? "undefined" : text_of(*value));
    bytes += path.back().size() + 1;
  }
  check_target_size(bytes);
  std::string encoded;
  for (const auto& segment : path) {
    if (!encoded.empty()) encoded += '/';
    encoded += http::percent_encode(segment);
  }
  return encoded;
}

// The segments that `*` at the end of the rule's path stands for.
std::vector<std::string> rest_of(const Rule& rule, const std::vector<std::string>& path) {
  if (rule.from.empty() || rule.from.back() != kRest) return {};
  return {path.begin() + static_cast<std::ptrdiff_t>(rule.from.size() - 1), path.end()};
}

std::string new_target(const Rule& rule, const RewrittenRequest& request, Variables variables) {
  for (const auto& [name, value] : request.query)
    variables.push_back({name, is_json_parameter(name) ? json::compact(value) : json::quoted(value)});
  Variables parameters;
  std::size_t bytes = 0;
  for (const auto& [name, value] : rule.query) {
    parameters.push_back({name, replaced(rule, value, variables)});
    bytes += name.size() + parameters.back().value.size();
    check_target_size(bytes);
  }
  for (const auto& variable : variables) {
    if (!rule.query.contains(variable.name)) parameters.push_back(variable);
  }
  std::string target = new_path(rule, parameters, rest_of(rule, request.path));
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    if (name == kRest) continue;
    target += std::exchange(separator, '&');
    target += http::percent_encode(name) + "=";
    target += http::percent_encode(is_json_parameter(name) ? value : text_of(value));
    check_target_size(target.size());
  }
  return target;
}

}  // namespace

std::optional<std::string> apply_rewrite_rules(std::string_view rules, const RewrittenRequest& request,
                                               bool is_secure) {
  if (rules.size() > kMaxRulesBytes)
    throw Error(500, "rewrite_error", fmt::format("The rules exceed {} bytes.", kMaxRulesBytes));
  std::optional<std::string> target;
  json::for_each_element(rules, [&](std::string_view json) {
    if (!json.starts_with('{')) return true;
    const Rule rule = parse_rule(json, is_secure);
    if (target || (rule.method != kRest && rule.method != request.method)) return true;
    if (auto variables = match(rule.from, request.path))
      target = new_target(rule, request, *std::move(variables));
    return true;
  });
  return target;
}

std::string resolve_path(std::string_view base, std::string_view target) {
  const auto end = std::min(target.find('?'), target.size());
  std::vector<std::string> resolved;
  for (const auto& segment : split_path(fmt::format("{}/{}", base, target.substr(0, end)))) {
    if (segment == ".") continue;
    if (segment == ".." && !resolved.empty() && resolved.back() != "..") {
      resolved.pop_back();
    } else {
      resolved.push_back(segment);
    }
  }
  return fmt::format("/{}{}", fmt::join(resolved, "/"), target.substr(end));
}

}  // namespace divan::api
