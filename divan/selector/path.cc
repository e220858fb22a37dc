#include "divan/selector/path.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::selector {
namespace {

// The element of an array with this index; an empty view if there is none.
std::string_view element(std::string_view array, std::string_view index) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), number);
  if (error != std::errc() || end != index.data() + index.size()) return {};
  std::string_view found;
  json::for_each_element(array, [&](std::string_view one) {
    if (number-- > 0) return true;
    found = one;
    return false;
  });
  return found;
}

// The member with this name, which may be written with escapes.
std::optional<std::string_view> member(std::string_view object, std::string_view name) {
  std::optional<std::string_view> found;
  json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    const bool has_escapes = raw_name.find('\\') != std::string_view::npos;
    if (has_escapes ? json::unescape(raw_name) == name : raw_name == name) found = value;
    return true;
  });
  return found;
}

}  // namespace

Path parse_path(std::string_view field) {
  Path path{""};
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '.' && (i == 0 || field[i - 1] != '\\')) {
      if (path.back().empty()) break;
      path.emplace_back();
    } else if (field[i] != '\\') {
      path.back() += field[i];
    }
  }
  if (path.back().empty())
    throw Error(400, "invalid_field_name", "Invalid field name: " + std::string(field));
  check_length(path);
  return path;
}

void check_length(const Path& path) {
  if (path.size() > kMaxPathNames)
    throw Error(400, "invalid_field_name",
                fmt::format("The path of a field has more than {} names.", kMaxPathNames));
}

std::string to_field(const Path& path) {
  std::string field;
  for (const auto& name : path) {
    if (&name != &path.front()) field += '.';
    for (const char c : name) {
      if (c == '.') field += '\\';
      field += c;
    }
  }
  return field;
}

Step step_into(std::string_view& value, std::string_view name) {
  if (value.starts_with('{')) {
    const auto found = member(value, name);
    if (!found) return Step::no_member;
    value = *found;
    return Step::found;
  }
  if (!value.starts_with('[')) return Step::no_path;
  value = element(value, name);
  return value.empty() ? Step::no_path : Step::found;
}

std::optional<std::string_view> find_field(const Path& path, std::string_view document) {
  for (const auto& name : path) {
    if (step_into(document, name) != Step::found) return std::nullopt;
  }
  return document;
}

}  // namespace divan::selector
