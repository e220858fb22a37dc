#include "divan/index/search/text_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/index/search/rows.h"

namespace divan::index::search {
namespace {

constexpr std::string_view kColon = "_3a";

Error invalid(std::string reason) { return {400, "invalid_index", std::move(reason)}; }

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void append_escaped(std::string& out, std::string_view name) {
  for (const char c : name) {
    if (is_alphanumeric(c)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "_{:02x}", static_cast<unsigned char>(c));
    }
  }
}

void append_name(std::string& path, std::string_view name) {
  if (!path.empty()) path += '.';
  append_escaped(path, name);
}

// Of the members of a document that begin with an underscore, `_id` is indexed.
bool is_special(std::string_view path) {
  return path.starts_with("_5f") && path != "_5fid" && !path.starts_with("_5fid.");
}

// The names of its fields would be too long.
bool is_long(std::string_view path) {
  constexpr std::size_t kLongestType = std::string_view("boolean").size();
  return path.size() + kColon.size() + kLongestType > kMaxFieldBytes;
}

bool parse_default_field(std::string_view json, std::string& analyzer) {
  if (json == "true" || json == "false") return json == "true";
  if (!json.starts_with('{')) throw invalid("`default_field` must be a boolean or an object.");
  if (const auto own = json::member(json, "analyzer")) analyzer = *own;
  const auto enabled = json::member(json, "enabled").value_or("true");
  if (enabled != "true" && enabled != "false") throw invalid("`default_field.enabled` must be a boolean.");
  return enabled == "true";
}

TextMap::IndexedField parse_field(std::string_view json) {
  TextMap::IndexedField field;
  json::for_each_member(json, [&](std::string_view name, std::string_view value) {
    if (name == "name") field.name = json::string_value(value).value_or("");
    if (name == "type") field.type = json::string_value(value).value_or("");
    return true;
  });
  const bool is_known = field.type == "string" || field.type == "number" || field.type == "boolean";
  if (field.name.empty() || !is_known)
    throw Error(400, "invalid_index_fields_definition",
                fmt::format("Text Index field definitions must be of the form {{\"name\": \"non-empty "
                            "fieldname\", \"type\": \"boolean,number, or string\"}}. Def: {}",
                            utf8_prefix(json, 200)));
  return field;
}

// Finds the fields of a document.
class FieldFinder {
 public:
  FieldFinder(const TextMap& map, const text::Analyzer& analyzer,
              const std::function<void(const Field&)>& add)
      : map_(map), analyzer_(analyzer), add_(add) {}

  void find(std::string_view document) {
    visit_members(document);
    for (const auto& name : names_) add_term(std::string(kFieldNames), json::quoted(name));
  }

 private:
  void visit(std::string_view value) {
    switch (value.front()) {
      case '{':
        note("object");
        visit_members(value);
        break;
      case '[': visit_elements(value); break;
      case '"': add_string(*json::string_value(value)); break;
      case 't':
      case 'f':
        note("boolean");
        if (map_.has_field(path_, "boolean")) add_term(text_field(path_, "boolean"), std::string(value));
        break;
      case 'n': note("null"); break;
      default:
        note("number");
        if (map_.has_field(path_, "number")) add_number(text_field(path_, "number"), text_number(value));
    }
  }

  void visit_members(std::string_view object) {
    const auto size = path_.size();
    json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
      append_name(path_, json::unescape(raw_name));
      if (!is_special(path_)) visit(value);
      path_.resize(size);
      return true;
    });
  }

  void visit_elements(std::string_view array) {
    note("array");
    std::size_t count = 0;
    const auto size = path_.size();
    append_name(path_, kElement);
    json::for_each_element(array, [&](std::string_view value) {
      ++count;
      visit(value);
      return true;
    });
    if (map_.has_array_lengths && map_.has_types(path_))
      add_number(text_field(path_, "length"), static_cast<double>(count));
    path_.resize(size);
  }

  // Adds the name of a field to those that the document has.
  void note(std::string_view type) {
    if (map_.has_types(path_)) names_.insert(text_field(path_, type));
  }

  // A number is also a term: equal ones are found without a look at all others.
  void add_number(const std::string& name, double number) {
    add_({.name = name, .json = number_term(number)});
    add_term(name, json::quoted(number_term(number)));
  }

  void add_term(std::string name, std::string json) {
    add_({.name = std::move(name), .json = std::move(json), .is_analyzed = false, .has_values = false});
  }

  void add_string(const std::string& text) {
    note("string");
    if (!map_.has_field(path_, "string")) return;
    if (map_.has_default_field)
      add_({.name = std::string(kDefaultTextField), .json = json::quoted(text), .has_values = false});
    auto name = text_field(path_, "string");
    const bool is_whole = has_whole_strings(analyzer_, name);
    const bool has_values = strings_[name]++ < kMaxValues;
    add_({.name = std::move(name),
          .json = json::quoted(is_whole ? text_term(text) : text),
          .is_analyzed = !is_whole,
          .has_values = has_values});
  }

  const TextMap& map_;
  const text::Analyzer& analyzer_;
  std::string path_;
  const std::function<void(const Field&)>& add_;
  std::set<std::string> names_;
  std::map<std::string, std::size_t> strings_;  // by name, to sort by
};

}  // namespace

TextMap TextMap::parse(std::string_view json) {
  if (!json.starts_with('{'))
    throw invalid(fmt::format("Text indexes must be an object, not: {}", utf8_prefix(json, 100)));
  TextMap map;
  map.json = json;
  std::string default_analyzer = "\"keyword\"", text_analyzer = "\"standard\"";
  if (const auto value = json::member(json, "default_analyzer")) default_analyzer = *value;
  if (const auto value = json::member(json, "default_field"))
    map.has_default_field = parse_default_field(*value, text_analyzer);
  map.analyzer = map.has_default_field
                     ? fmt::format(R"({{"name":"perfield","default":{},"fields":{{"{}":{}}}}})",
                                   default_analyzer, kDefaultTextField, text_analyzer)
                     : "\"keyword\"";
  for (const auto* name : {"selector", "partial_filter_selector"}) {
    const auto filter = json::member(json, name);
    if (filter && *filter != "{}") map.filter_json = *filter;
  }
  if (!map.filter_json.empty()) map.filter = selector::Selector::parse(map.filter_json);
  const auto lengths = json::member(json, "index_array_lengths").value_or("true");
  if (lengths != "true" && lengths != "false") throw invalid("`index_array_lengths` must be a boolean.");
  map.has_array_lengths = lengths == "true";
  const auto fields = json::member(json, "fields").value_or("[]");
  if (fields == "\"all_fields\"") return map;
  const bool is_array = json::for_each_element(fields, [&](std::string_view element) {
    auto field = parse_field(element);
    const auto path = text_path(selector::parse_path(field.name));
    if (!map.names_.insert(text_field(path, field.type)).second)
      throw invalid(fmt::format("The field `{}` occurs twice.", field.name));
    map.paths_.insert(path);
    if (is_special(path) || is_long(path))
      throw invalid(fmt::format("The field `{}` cannot be indexed.", utf8_prefix(field.name, 100)));
    map.fields.push_back(std::move(field));
    if (map.fields.size() > kMaxTextFields)
      throw invalid(fmt::format("A text index has at most {} fields.", kMaxTextFields));
    return true;
  });
  if (!is_array) throw invalid("`fields` must be an array, or \"all_fields\".");
  return map;
}

bool TextMap::has_field(std::string_view path, std::string_view type) const {
  return has_types(path) && (fields.empty() || names_.contains(text_field(path, type)));
}

bool TextMap::has_types(std::string_view path) const {
  if (path.empty() || is_special(path) || is_long(path)) return false;
  return fields.empty() || paths_.contains(path);
}

void TextMap::visit_fields(std::string_view document, const text::Analyzer& text_analyzer,
                           const std::function<void(const Field&)>& visit) const {
  if (!filter || filter->matches(document)) FieldFinder(*this, text_analyzer, visit).find(document);
}

std::string text_path(const selector::Path& path) {
  std::string out;
  for (const auto& name : path) append_name(out, name);
  return out;
}

std::string text_field(std::string_view path, std::string_view type) {
  return std::string(path).append(kColon).append(type);
}

bool has_whole_strings(const text::Analyzer& analyzer, std::string_view field) {
  return analyzer.analyzer_for(field).is_keyword();
}

std::string_view text_term(std::string_view string) { return utf8_prefix(string, kMaxTermBytes); }

std::string number_term(double number) {
  std::string text;
  json::append_double(text, number == 0 ? 0 : number);  // also -0
  return text;
}

double text_number(std::string_view json) {
  double number = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), number);
  if (error != std::errc::result_out_of_range) return number;
  constexpr double kGreatest = std::numeric_limits<double>::max();
  return std::clamp(std::strtod(std::string(json).c_str(), nullptr), -kGreatest, kGreatest);
}

}  // namespace divan::index::search
