#include "divan/index/search/field.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "divan/base/bytes.h"
#include "divan/base/json.h"

namespace divan::index::search {
namespace {

constexpr std::size_t kShownBytes = 60;

bool is_primitive(std::string_view value) {
  return !value.empty() && (value[0] == '"' || value[0] == '-' || (value[0] >= '0' && value[0] <= '9') ||
                            value == "true" || value == "false");
}

// The options of a field have names of Lucene, or are truth values.
void set_options(std::string_view options, Field& field) {
  json::for_each_member(options, [&](std::string_view name, std::string_view value) {
    auto word = json::string_value(value).value_or(std::string(value));
    std::ranges::transform(word, word.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    if (name == "store") {
      field.is_stored = word == "true" || word == "yes";
    } else if (name == "index") {
      field.is_indexed = word != "false" && word != "no";
      field.is_analyzed = word != "not_analyzed" && word != "not_analyzed_no_norms";
    } else if (name == "facet") {
      field.is_facet = word == "true";
    } else if (name == "boost") {
      float boost = 1;
      const char* const end = word.data() + word.size();
      if (std::from_chars(word.data(), end, boost).ptr == end && std::isfinite(boost) && boost >= 0)
        field.boost = boost;
    }
    return true;
  });
}

}  // namespace

std::vector<Field> fields_of(std::span<const js::Emitted> emitted,
                             const std::function<void(std::string_view reason)>& refuse) {
  std::vector<Field> fields;
  for (const auto& [arguments, unused] : emitted) {
    const auto name = json::member(arguments, "name"), value = json::member(arguments, "value");
    const auto text = name ? json::string_value(*name) : std::nullopt;
    if (!text || text->starts_with('_') || !value) {
      refuse("What it emits is not that of index().");
      continue;
    }
    if (!is_primitive(*value)) {
      refuse(fmt::format("A value of field `{}` is neither text, a finite number nor a boolean.",
                         utf8_prefix(*text, kShownBytes)));
      continue;
    }
    Field field{.name = *text, .json = std::string(*value)};
    if (const auto options = json::member(arguments, "options")) set_options(*options, field);
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace divan::index::search
