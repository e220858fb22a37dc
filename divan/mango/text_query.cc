#include "divan/mango/text_query.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/index/search/query_parser.h"

namespace divan::mango {
namespace {

using index::search::has_whole_strings;
using index::search::kElement;
using index::search::Occur;
using index::search::parse_phrase;
using index::search::Query;
using index::search::text_field;
using selector::Condition;
using selector::Operator;
using selector::Path;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A number in a path is the name of a member or the index of an element: so many paths are tried at most.
constexpr std::size_t kMaxPaths = 8;
// With more values, all documents with the types of the values are read.
constexpr std::size_t kMaxValues = 500;

// The types of JSON in the order of values (docs/views.md).
constexpr std::array<std::string_view, 6> kTypes = {"null", "boolean", "number", "string", "array", "object"};

std::string_view type_of(std::string_view json) {
  switch (json.front()) {
    case 'n': return "null";
    case 't':
    case 'f': return "boolean";
    case '"': return "string";
    case '[': return "array";
    case '{': return "object";
    default: return "number";
  }
}

// Queries of one kind combined. Those that find nothing, as a text without words, are ignored if there are
// others.
Query combined(std::vector<Query> queries, Occur occur) {
  std::erase_if(queries, [](const Query& query) { return query.kind == Query::Kind::none; });
  if (queries.empty()) return {};
  if (queries.size() == 1) return std::move(queries.front());
  Query all{.kind = Query::Kind::boolean};
  for (auto& query : queries) all.clauses.push_back({occur, std::move(query)});
  return all;
}

class Translator {
 public:
  Translator(const index::search::TextMap& map, const text::Analyzer& analyzer)
      : map_(map), analyzer_(analyzer) {}

  // nullopt: all documents, also such that are not in the index.
  std::optional<Query> translate(const Condition& condition, const Path& base) {
    switch (condition.op) {
      case Operator::all_of: {
        std::vector<Query> queries;
        for (const auto& child : condition.children) {
          if (auto query = translate(child, base)) queries.push_back(*std::move(query));
        }
        if (queries.empty()) return std::nullopt;
        return combined(std::move(queries), Occur::must);
      }
      case Operator::any_of: {
        std::vector<Query> queries;
        for (const auto& child : condition.children) {
          auto query = translate(child, base);
          if (!query) return std::nullopt;
          queries.push_back(*std::move(query));
        }
        if (queries.empty()) return std::nullopt;
        return combined(std::move(queries), Occur::should);
      }
      case Operator::always:
      case Operator::none_of: return std::nullopt;
      case Operator::text:
        has_all_words_ = has_all_words_ && map_.has_default_field;
        return parse_phrase(std::string(index::search::kDefaultTextField), condition.text, analyzer_);
      default: break;
    }
    std::vector<Query> queries;
    for (const auto& path : paths_of(base, condition.path)) {
      auto query = on_field(condition, path);
      if (!query) return std::nullopt;
      queries.push_back(*std::move(query));
    }
    if (queries.empty()) return std::nullopt;
    return combined(std::move(queries), Occur::should);
  }

  // Returns false if there was `$text`, but the index has no words.
  bool has_all_words() const { return has_all_words_; }

 private:
  // The paths in the index of values that a path of a selector may mean; none if they are too many.
  static std::vector<Path> paths_of(const Path& base, const Path& path) {
    std::vector<Path> paths = {base};
    for (const auto& name : path) {
      const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
      const auto count = paths.size();
      if (is_number && 2 * count > kMaxPaths) return {};
      for (std::size_t i = 0; i < count; ++i) {
        if (is_number) paths.push_back(below(paths[i], kElement));
        paths[i].push_back(name);
      }
    }
    return paths;
  }

  static Path below(Path path, std::string_view name) {
    path.emplace_back(name);
    return path;
  }

  std::optional<Query> on_field(const Condition& condition, const Path& path) {
    if (condition.negated) return exists(path);
    switch (condition.op) {
      case Operator::equal: return equals(path, condition.argument);
      case Operator::less:
      case Operator::less_or_equal: return compares(path, condition.argument, true);
      case Operator::greater:
      case Operator::greater_or_equal: return compares(path, condition.argument, false);
      case Operator::in: return is_in(path, condition.argument);
      case Operator::exists: return condition.exists ? exists(path) : std::nullopt;
      case Operator::type: {
        const bool is_known = std::ranges::find(kTypes, condition.text) != kTypes.end();
        return is_known ? of_type(path, condition.text) : exists(path);
      }
      case Operator::mod: return of_type(path, "number");
      case Operator::regex: return of_type(path, "string");
      case Operator::begins_with: return begins_with(path, condition.text);
      case Operator::size: return has_size(path, condition.number);
      case Operator::all: return has_all(path, condition);
      case Operator::key_map_match: return of_type(path, "object");
      case Operator::elem_match:
      case Operator::all_match:
        return all_that_restrict(
            {of_type(path, "array"), translate(condition.children[0], below(path, kElement))});
      default: return exists(path);  // not_equal, not_in
    }
  }

  static std::optional<Query> all_that_restrict(const std::vector<std::optional<Query>>& queries) {
    std::vector<Query> all;
    for (const auto& query : queries) {
      if (query) all.push_back(*query);
    }
    if (all.empty()) return std::nullopt;
    return combined(std::move(all), Occur::must);
  }

  static Query with_text(Query::Kind kind, std::string field, std::string text) {
    Query query{.kind = kind, .field = std::move(field), .boost = 0};
    query.text = std::move(text);
    return query;
  }

  std::optional<Query> exists(const Path& path) const {
    const auto name = index::search::text_path(path);
    if (!map_.has_types(name)) return std::nullopt;
    return with_text(Query::Kind::prefix, std::string(index::search::kFieldNames), text_field(name, ""));
  }

  std::optional<Query> of_type(const Path& path, std::string_view type) const {
    const auto name = index::search::text_path(path);
    if (!map_.has_types(name)) return std::nullopt;
    return with_text(Query::Kind::term, std::string(index::search::kFieldNames), text_field(name, type));
  }

  std::optional<Query> equals(const Path& path, std::string_view json) const {
    const auto type = type_of(json);
    const auto name = index::search::text_path(path);
    if (!map_.has_field(name, type)) return of_type(path, type);
    const auto field = text_field(name, type);
    if (type == "boolean") return with_text(Query::Kind::term, field, std::string(json));
    if (type == "number") {
      const double number = index::search::text_number(json);
      return between(field, number, number);
    }
    if (type != "string" || !has_whole_strings(analyzer_, field)) return of_type(path, type);
    const auto text = *json::string_value(json);
    return with_text(Query::Kind::term, field, std::string(index::search::text_term(text)));
  }

  static Query between(std::string field, double least, double greatest) {
    return {.kind = Query::Kind::number_range,
            .field = std::move(field),
            .boost = 0,
            .least = least,
            .greatest = greatest};
  }

  // Values of all types have an order.
  std::optional<Query> compares(const Path& path, std::string_view json, bool is_less) const {
    const auto type = type_of(json);
    const auto name = index::search::text_path(path);
    if (!map_.has_types(name)) return std::nullopt;
    std::vector<Query> queries;
    const auto own = std::ranges::find(kTypes, type);
    for (auto one = is_less ? kTypes.begin() : own; one != (is_less ? own + 1 : kTypes.end()); ++one) {
      if (one == own && type == "number" && map_.has_field(name, type)) {
        const double number = index::search::text_number(json);
        queries.push_back(
            between(text_field(name, type), is_less ? -kInfinity : number, is_less ? number : kInfinity));
      } else {
        queries.push_back(*of_type(path, *one));
      }
    }
    return combined(std::move(queries), Occur::should);
  }

  // The value, or an element of it, is one of a list.
  std::optional<Query> is_in(const Path& path, std::string_view list) const {
    auto value = is_one_of(path, list);
    auto element = is_one_of(below(path, kElement), list);
    if (!element) element = of_type(path, "array");
    if (!value || !element) return std::nullopt;
    return combined({*std::move(value), *std::move(element)}, Occur::should);
  }

  std::optional<Query> is_one_of(const Path& path, std::string_view list) const {
    std::vector<Query> queries;
    std::set<std::string_view> types;
    std::size_t count = 0;
    double least = kInfinity, greatest = -kInfinity;
    json::for_each_element(list, [&](std::string_view json) {
      types.insert(type_of(json));
      ++count;
      if (type_of(json) != "number") return true;
      least = std::min(least, index::search::text_number(json));
      greatest = std::max(greatest, index::search::text_number(json));
      return true;
    });
    bool is_known = true;
    const auto add = [&](std::optional<Query> query) {
      is_known = is_known && query;
      if (query) queries.push_back(*std::move(query));
    };
    const auto name = index::search::text_path(path);
    for (const auto type : types) {
      if (type == "number" && map_.has_field(name, type)) {
        add(between(text_field(name, type), least, greatest));
      } else if (type == "number" || count > kMaxValues) {
        add(of_type(path, type));
      }
    }
    json::for_each_element(list, [&](std::string_view json) {
      if (count <= kMaxValues && type_of(json) != "number") add(equals(path, json));
      return true;
    });
    if (!is_known) return std::nullopt;
    return combined(std::move(queries), Occur::should);
  }

  std::optional<Query> begins_with(const Path& path, const std::string& prefix) const {
    const auto name = index::search::text_path(path);
    const auto field = text_field(name, "string");
    if (!map_.has_field(name, "string") || !has_whole_strings(analyzer_, field))
      return of_type(path, "string");
    return with_text(Query::Kind::prefix, field, std::string(index::search::text_term(prefix)));
  }

  std::optional<Query> has_size(const Path& path, std::int64_t size) const {
    const auto elements = index::search::text_path(below(path, kElement));
    if (!map_.has_array_lengths || !map_.has_types(elements)) return of_type(path, "array");
    const auto number = static_cast<double>(size);
    return between(text_field(elements, "length"), number, number);
  }

  std::optional<Query> has_all(const Path& path, const Condition& condition) const {
    std::vector<std::optional<Query>> queries = {of_type(path, "array")};
    // With one array, the value may be that array.
    if (condition.text.empty() && condition.values.size() <= kMaxValues) {
      for (const auto& value : condition.values) queries.push_back(equals(below(path, kElement), value));
    }
    return all_that_restrict(queries);
  }

  const index::search::TextMap& map_;
  const text::Analyzer& analyzer_;
  bool has_all_words_ = true;
};

// The types of the values with which conditions compare a field.
void add_types(const Condition& condition, const Path& path, std::set<std::string_view>& types) {
  if (condition.op == Operator::all_of || condition.op == Operator::any_of) {
    for (const auto& child : condition.children) add_types(child, path, types);
  }
  if (condition.path != path || condition.argument.empty()) return;
  const auto type = type_of(condition.argument);
  if (type == "string" || type == "number") types.insert(type);
}

struct TypedField {
  Path path;
  std::string_view type;  // empty: unknown
};

TypedField typed(const Sort::Field& field, const Condition& condition) {
  TypedField found{.path = field.path, .type = {}};
  for (const std::string_view type : {"string", "number"}) {
    auto& name = found.path.back();
    const auto size = type.size() + 1;
    if (name.size() <= size || !name.ends_with(type) || name[name.size() - size] != ':') continue;
    name.resize(name.size() - size);
    found.type = type;
    return found;
  }
  std::set<std::string_view> types;
  add_types(condition, found.path, types);
  if (types.size() == 1) found.type = *types.begin();
  return found;
}

}  // namespace

bool has_text(const Condition& condition) {
  return condition.op == Operator::text || std::ranges::any_of(condition.children, has_text);
}

std::optional<Query> text_query(const Condition& condition, const index::search::TextMap& map,
                                const text::Analyzer& analyzer) {
  Translator translator(map, analyzer);
  auto query = translator.translate(condition, {});
  return translator.has_all_words() ? std::move(query) : std::nullopt;
}

bool has_sort_fields(const Sort& sort, const Condition& condition, const index::search::TextMap& map) {
  return std::ranges::all_of(sort.fields, [&](const Sort::Field& field) {
    const auto [path, type] = typed(field, condition);
    return type.empty() || map.has_field(index::search::text_path(path), type);
  });
}

std::vector<std::string> text_sort(const Sort& sort, const Condition& condition) {
  std::vector<std::string> fields;
  for (const auto& field : sort.fields) {
    const auto [path, type] = typed(field, condition);
    if (type.empty())
      throw Error(400, "text_sort_error",
                  fmt::format("Unspecified or ambiguous sort type. Try appending :number or :string to the "
                              "sort field. {}",
                              field.name));
    fields.push_back(fmt::format("{}{}<{}>", sort.descending ? "-" : "",
                                 text_field(index::search::text_path(path), type), type));
  }
  return fields;
}

}  // namespace divan::mango
