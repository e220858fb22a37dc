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
using selector::type_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A number in a path is the name of a member or the index of an element: so many paths are tried at most.
constexpr std::size_t kMaxPaths = 8;
// With more values, all documents with the types of the values are read.
constexpr std::size_t kMaxValues = 500;
// Conditions on fields that are translated; others do not restrict what is read.
constexpr std::size_t kMaxTranslated = 4'096;

// The types of JSON in the order of values (docs/views.md).
constexpr std::array<std::string_view, 6> kTypes = {"null", "boolean", "number", "string", "array", "object"};

// A part of the query, and whether it finds documents by their values, not only by the types of these.
struct Part {
  Query query;
  bool is_selective = true;
};
using MaybePart = std::optional<Part>;

// Queries of one kind combined. Those that find nothing, as a text without words, are ignored if there are
// others. A document must match all of them or, with Occur::should, one.
Part combined(std::vector<Part> parts, Occur occur) {
  std::erase_if(parts, [](const Part& part) { return part.query.kind == Query::Kind::none; });
  if (parts.empty()) return {};
  if (parts.size() == 1) return std::move(parts.front());
  const auto is_selective = [](const Part& part) { return part.is_selective; };
  Part all{.query = {.kind = Query::Kind::boolean},
           .is_selective = occur == Occur::must ? std::ranges::any_of(parts, is_selective)
                                                : std::ranges::all_of(parts, is_selective)};
  for (auto& part : parts) all.query.clauses.push_back({occur, std::move(part.query)});
  return all;
}

class Translator {
 public:
  Translator(const index::search::TextMap& map, const text::Analyzer& analyzer)
      : map_(map), analyzer_(analyzer) {}

  // nullopt: all documents, also such that are not in the index.
  MaybePart translate(const Condition& condition, const Path& base) {
    switch (condition.op) {
      case Operator::all_of: {
        std::vector<Part> parts;
        for (const auto& child : condition.children) {
          if (auto part = translate(child, base)) parts.push_back(*std::move(part));
        }
        if (parts.empty()) return std::nullopt;
        return combined(std::move(parts), Occur::must);
      }
      case Operator::any_of: {
        std::vector<Part> parts;
        for (const auto& child : condition.children) {
          auto part = translate(child, base);
          if (!part) return std::nullopt;
          parts.push_back(*std::move(part));
        }
        if (parts.empty()) return std::nullopt;
        return combined(std::move(parts), Occur::should);
      }
      case Operator::always:
      case Operator::none_of: return std::nullopt;
      case Operator::text:
        lacks_words_ = lacks_words_ || !map_.has_default_field;
        return Part{parse_phrase(std::string(index::search::kDefaultTextField), condition.text, analyzer_)};
      default: break;
    }
    std::vector<Part> parts;
    for (const auto& path : paths_of(base, condition.path)) {
      auto part = ++translated_ > kMaxTranslated ? std::nullopt : on_field(condition, path);
      if (!part) return std::nullopt;
      parts.push_back(*std::move(part));
    }
    if (parts.empty()) return std::nullopt;
    return combined(std::move(parts), Occur::should);
  }

  // Returns true if there was `$text`, but the index has no words.
  bool lacks_words() const { return lacks_words_; }

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

  MaybePart on_field(const Condition& condition, const Path& path) {
    if (path == Path{"_id"}) return on_id(condition, index::search::text_path(path));
    if (condition.negated) return exists(path, false);
    switch (condition.op) {
      case Operator::equal: return equals(path, condition.argument);
      case Operator::less:
      case Operator::less_or_equal: return compares(path, condition.argument, true);
      case Operator::greater:
      case Operator::greater_or_equal: return compares(path, condition.argument, false);
      case Operator::in: return is_in(path, condition.argument);
      case Operator::exists: return condition.exists ? exists(path, true) : std::nullopt;
      case Operator::type: {
        const bool is_known = std::ranges::find(kTypes, condition.text) != kTypes.end();
        return is_known ? of_type(path, condition.text, true) : exists(path, false);
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
      default: return exists(path, false);  // not_equal, not_in
    }
  }

  // Ids are strings, and compare by their bytes, as in the index. It has all documents only if it has their
  // ids as a field.
  MaybePart on_id(const Condition& condition, std::string_view path) const {
    if (!map_.has_types(path)) return std::nullopt;
    if (condition.op == Operator::in) return is_one_of_ids(condition.argument);
    const auto id = json::string_value(condition.argument);
    if (!id || condition.negated) return std::nullopt;
    Query query{.kind = Query::Kind::text_range, .field = "_id", .boost = 0};
    switch (condition.op) {
      case Operator::equal: return Part{with_text(Query::Kind::term, "_id", *id)};
      case Operator::begins_with: return Part{with_text(Query::Kind::prefix, "_id", *id)};
      case Operator::less:
      case Operator::less_or_equal:
        query.upper = *id;
        query.has_upper = true;
        return Part{std::move(query)};
      case Operator::greater:
      case Operator::greater_or_equal:
        query.lower = *id;
        query.has_lower = true;
        return Part{std::move(query)};
      default: return std::nullopt;
    }
  }

  static MaybePart is_one_of_ids(std::string_view list) {
    std::vector<Part> ids;
    json::for_each_element(list, [&](std::string_view json) {
      if (const auto id = json::string_value(json)) ids.push_back({with_text(Query::Kind::term, "_id", *id)});
      return ids.size() <= kMaxValues;
    });
    if (ids.size() > kMaxValues) return std::nullopt;
    return combined(std::move(ids), Occur::should);
  }

  static MaybePart all_that_restrict(const std::vector<MaybePart>& parts) {
    std::vector<Part> all;
    for (const auto& part : parts) {
      if (part) all.push_back(*part);
    }
    if (all.empty()) return std::nullopt;
    return combined(std::move(all), Occur::must);
  }

  static Query with_text(Query::Kind kind, std::string field, std::string text) {
    Query query{.kind = kind, .field = std::move(field), .boost = 0};
    query.text = std::move(text);
    return query;
  }

  MaybePart exists(const Path& path, bool is_selective) const {
    const auto name = index::search::text_path(path);
    if (!map_.has_types(name)) return std::nullopt;
    return Part{with_text(Query::Kind::prefix, std::string(index::search::kFieldNames), text_field(name, "")),
                is_selective};
  }

  MaybePart of_type(const Path& path, std::string_view type, bool is_selective = false) const {
    const auto name = index::search::text_path(path);
    if (!map_.has_types(name)) return std::nullopt;
    return Part{with_text(Query::Kind::term, std::string(index::search::kFieldNames), text_field(name, type)),
                is_selective};
  }

  MaybePart equals(const Path& path, std::string_view json) const {
    const auto type = type_of(json);
    const auto name = index::search::text_path(path);
    if (type == "null" || !map_.has_field(name, type)) return of_type(path, type, type == "null");
    const auto field = text_field(name, type);
    if (type == "boolean") return Part{with_text(Query::Kind::term, field, std::string(json))};
    if (type == "number") {
      const double number = index::search::text_number(json);
      return Part{with_text(Query::Kind::term, field, index::search::number_term(number))};
    }
    if (type != "string" || !has_whole_strings(analyzer_, field)) return of_type(path, type);
    const auto text = *json::string_value(json);
    return Part{with_text(Query::Kind::term, field, std::string(index::search::text_term(text)))};
  }

  static Query between(std::string field, double least, double greatest) {
    return {.kind = Query::Kind::number_range,
            .field = std::move(field),
            .boost = 0,
            .least = least,
            .greatest = greatest};
  }

  // Values of all types have an order. Strings have that of collation, which the index does not know.
  MaybePart compares(const Path& path, std::string_view json, bool is_less) const {
    const auto type = type_of(json);
    const auto name = index::search::text_path(path);
    if (!map_.has_types(name)) return std::nullopt;
    std::vector<Part> parts;
    const auto own = std::ranges::find(kTypes, type);
    for (auto one = is_less ? kTypes.begin() : own; one != (is_less ? own + 1 : kTypes.end()); ++one) {
      if (one == own && type == "number" && map_.has_field(name, type)) {
        const double number = index::search::text_number(json);
        parts.push_back(
            {between(text_field(name, type), is_less ? -kInfinity : number, is_less ? number : kInfinity)});
      } else {
        parts.push_back(*of_type(path, *one, one != own));
      }
    }
    return combined(std::move(parts), Occur::should);
  }

  // The value, or an element of it, is one of a list.
  MaybePart is_in(const Path& path, std::string_view list) const {
    auto value = is_one_of(path, list);
    auto element = is_one_of(below(path, kElement), list);
    if (!element) element = of_type(path, "array");
    if (!value || !element) return std::nullopt;
    return combined({*std::move(value), *std::move(element)}, Occur::should);
  }

  MaybePart is_one_of(const Path& path, std::string_view list) const {
    std::vector<Part> parts;
    std::set<std::string_view> types;
    std::size_t count = 0;
    json::for_each_element(list, [&](std::string_view json) {
      types.insert(type_of(json));
      return ++count <= kMaxValues || types.size() < kTypes.size();
    });
    bool is_known = true;
    const auto add = [&](MaybePart part) {
      is_known = is_known && part;
      if (part) parts.push_back(*std::move(part));
    };
    if (count > kMaxValues) {
      for (const auto type : types) add(of_type(path, type));
    } else {
      json::for_each_element(list, [&](std::string_view json) {
        add(equals(path, json));
        return true;
      });
    }
    if (!is_known) return std::nullopt;
    return combined(std::move(parts), Occur::should);
  }

  MaybePart begins_with(const Path& path, const std::string& prefix) const {
    const auto name = index::search::text_path(path);
    const auto field = text_field(name, "string");
    if (!map_.has_field(name, "string") || !has_whole_strings(analyzer_, field))
      return of_type(path, "string");
    return Part{with_text(Query::Kind::prefix, field, std::string(index::search::text_term(prefix)))};
  }

  MaybePart has_size(const Path& path, std::int64_t size) const {
    const auto elements = index::search::text_path(below(path, kElement));
    if (!map_.has_array_lengths || !map_.has_types(elements)) return of_type(path, "array");
    return Part{with_text(Query::Kind::term, text_field(elements, "length"),
                          index::search::number_term(static_cast<double>(size)))};
  }

  MaybePart has_all(const Path& path, const Condition& condition) const {
    std::vector<MaybePart> parts = {of_type(path, "array")};
    // With one array, the value may be that array.
    if (condition.text.empty() && condition.values.size() <= kMaxValues) {
      for (const auto& value : condition.values) parts.push_back(equals(below(path, kElement), value));
    }
    return all_that_restrict(parts);
  }

  const index::search::TextMap& map_;
  const text::Analyzer& analyzer_;
  bool lacks_words_ = false;
  std::size_t translated_ = 0;
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
  if (found.path == Path{"_id"}) {
    found.type = "string";
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

std::optional<TextQuery> text_query(const Condition& condition, const index::search::TextMap& map,
                                    const text::Analyzer& analyzer) {
  Translator translator(map, analyzer);
  auto part = translator.translate(condition, {});
  if (!part || translator.lacks_words()) return std::nullopt;
  return TextQuery{std::move(part->query), part->is_selective};
}

bool has_sort_fields(const Sort& sort, const Condition& condition, const index::search::TextMap& map) {
  return std::ranges::all_of(sort.fields, [&](const Sort::Field& field) {
    const auto [path, type] = typed(field, condition);
    return type.empty() || map.has_field(index::search::text_path(path), type);
  });
}

std::vector<std::string> text_sort(const Sort& sort, const Condition& condition) {
  if (sort.fields.size() > kMaxTextSortFields)
    throw Error(400, "text_sort_error",
                fmt::format("A text index sorts by at most {} fields.", kMaxTextSortFields));
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
