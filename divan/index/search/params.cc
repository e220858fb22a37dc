#include "divan/index/search/params.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/json.h"

namespace divan::index::search {
namespace {

Error invalid(std::string reason) { return {400, "query_parse_error", std::move(reason)}; }

Error invalid_value(std::string_view name, std::string_view value) {
  return invalid(fmt::format("Invalid value for {}: {}", name, value));
}

std::string text_of(std::string_view name, std::string_view value) {
  auto text = json::string_value(value);
  if (!text) throw invalid_value(name, value);
  return *std::move(text);
}

bool boolean(std::string_view name, std::string_view value) {
  if (value == "true" || value == "\"true\"") return true;
  if (value == "false" || value == "\"false\"") return false;
  throw invalid_value(name, value);
}

std::uint64_t count(std::string_view name, std::string_view value, std::uint64_t least, std::uint64_t most) {
  const auto number = json::int_value(json::string_value(value).value_or(std::string(value)));
  if (!number) throw invalid_value(name, value);
  if (*number < static_cast<std::int64_t>(least))
    throw invalid(fmt::format("{} must be greater than {}", name, least == 0 ? "or equal to zero" : "zero"));
  if (static_cast<std::uint64_t>(*number) > most)
    throw invalid(fmt::format("Value for {} is too large, must not exceed {}", name, most));
  return static_cast<std::uint64_t>(*number);
}

void check_size(std::string_view name, std::size_t size, std::size_t most) {
  if (size > most) throw invalid(fmt::format("{} can have {} elements at most", name, most));
}

std::vector<std::string> texts_of(std::string_view name, std::string_view value,
                                  std::size_t most = kMaxFieldsOfAList) {
  std::vector<std::string> texts;
  const bool is_array = json::for_each_element(value, [&](std::string_view element) {
    texts.push_back(text_of(name, element));
    return true;
  });
  if (!is_array) throw invalid_value(name, value);
  check_size(name, texts.size(), most);
  return texts;
}

std::vector<SortField> sort_of(std::string_view name, std::string_view value) {
  const auto texts = value.starts_with('[') ? texts_of(name, value) : std::vector{text_of(name, value)};
  if (texts.size() == 1 && texts.front() == "relevance") return {};
  std::vector<SortField> fields;
  for (const auto& text : texts) fields.push_back(SortField::parse(text));
  return fields;
}

// [field, value, ...], or an array of these.
void add_drilldown(std::string_view value, std::vector<std::vector<std::string>>& drilldown) {
  if (value.starts_with("[[")) {
    json::for_each_element(value, [&](std::string_view element) {
      drilldown.push_back(texts_of("drilldown", element, kMaxValuesOfAList));
      return true;
    });
  } else {
    drilldown.push_back(texts_of("drilldown", value, kMaxValuesOfAList));
  }
  check_size("drilldown", drilldown.size(), kMaxFieldsOfAList);
  for (const auto& path : drilldown) {
    if (path.size() < 2) throw invalid_value("drilldown", value);
  }
}

auto ranges_of(std::string_view value) {
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> ranges;
  const bool is_object =
      json::for_each_member(value, [&](std::string_view raw_field, std::string_view labels) {
        auto& range_of_field = ranges.emplace_back();
        range_of_field.first = json::unescape(raw_field);
        const bool are_labels =
            json::for_each_member(labels, [&](std::string_view raw_label, std::string_view range) {
              range_of_field.second.emplace_back(json::unescape(raw_label), text_of("ranges", range));
              return true;
            });
        if (!are_labels) throw invalid_value("ranges", value);
        return true;
      });
  if (!is_object) throw invalid_value("ranges", value);
  check_size("ranges", ranges.size(), kMaxFieldsOfAList);
  for (const auto& [field, of_field] : ranges) check_size("ranges", of_field.size(), kMaxValuesOfAList);
  return ranges;
}

views::Update update_of(std::string_view name, std::string_view value) {
  const auto text = json::string_value(value).value_or(std::string(value));
  if (name == "stale") {
    if (text == "ok") return views::Update::never;
    throw invalid("stale only available as stale=ok");
  }
  if (text == "true") return views::Update::wait;
  if (text == "false") return views::Update::never;
  if (text == "lazy") return views::Update::lazy;
  throw invalid_value(name, value);
}

void set(SearchParams& params, const std::string& name, const std::string& value) {
  if (name == "q" || name == "query") {
    params.query = text_of(name, value);
  } else if (name == "partition") {
    auto partition = text_of(name, value);
    if (params.partition && *params.partition != partition)
      throw bad_request("Multiple conflicting values for `partition` provided");
    params.partition = std::move(partition);
  } else if (name == "limit") {
    params.limit = count(name, value, 0, INT32_MAX);
  } else if (name == "bookmark") {
    params.bookmark = Bookmark::decode(text_of(name, value));
  } else if (name == "sort") {
    params.sort = sort_of(name, value);
  } else if (name == "include_docs") {
    params.include_docs = boolean(name, value);
  } else if (name == "include_fields") {
    params.include_fields = texts_of(name, value, kMaxValuesOfAList);
  } else if (name == "stale" || name == "update") {
    params.update = update_of(name, value);
  } else if (name == "counts") {
    params.counts = texts_of(name, value);
  } else if (name == "ranges") {
    params.ranges = ranges_of(value);
  } else if (name == "drilldown") {
    add_drilldown(value, params.drilldown);
  } else if (name == "group_field" || name == "group_by") {
    params.group_field = text_of(name, value);
    params.has_old_group_names = name == "group_by";
  } else if (name == "group_limit") {
    params.group_limit = count(name, value, 1, kMaxGroups);
  } else if (name == "group_sort") {
    params.group_sort = sort_of(name, value);
  } else if (name == "highlight_fields") {
    params.highlight_fields = texts_of(name, value);
  } else if (name == "highlight_pre_tag") {
    params.highlight_pre_tag = text_of(name, value);
  } else if (name == "highlight_post_tag") {
    params.highlight_post_tag = text_of(name, value);
  } else if (name == "highlight_number") {
    params.highlight_number = count(name, value, 1, kMaxHighlights);
  } else if (name == "highlight_size") {
    params.highlight_size = count(name, value, 1, kMaxHighlightSize);
  }
}

// The parameters of a URL that are not JSON.
bool is_text(std::string_view name) {
  constexpr std::string_view kTexts[] = {"q",        "query", "partition", "bookmark",
                                         "group_by", "stale", "update",    "group_field"};
  return std::ranges::find(kTexts, name) != std::end(kTexts);
}

}  // namespace

SearchParamTexts params_of_url(const std::vector<std::pair<std::string, std::string>>& params) {
  SearchParamTexts texts;
  for (const auto& [name, value] : params) {
    if (is_text(name)) {
      if (!is_utf8(value)) throw invalid(fmt::format("The value of {} is not valid UTF-8", name));
      texts.emplace_back(name, json::quoted(value));
    } else {
      try {
        texts.emplace_back(name, json::compact(value));
      } catch (const Error&) {
        // Taken as a string: parse_params() refuses it where another type is expected.
        texts.emplace_back(name, is_utf8(value) ? json::quoted(value) : "null");
      }
    }
  }
  return texts;
}

SearchParamTexts params_of_body(std::string_view json) {
  SearchParamTexts texts;
  const bool is_object = json::for_each_member(json, [&](std::string_view raw_name, std::string_view value) {
    texts.emplace_back(json::unescape(raw_name), value);
    return true;
  });
  if (!is_object) throw bad_request("Request body must be a JSON object");
  return texts;
}

SearchParams parse_params(const SearchParamTexts& texts) {
  SearchParams params;
  bool has_query = false;
  for (const auto& [name, value] : texts) {
    if (value == "null") continue;
    set(params, name, value);
    has_query = has_query || name == "q" || name == "query";
  }
  if (!has_query) throw invalid("Query must include a 'q' or 'query' argument");
  return params;
}

}  // namespace divan::index::search
