#include "divan/mango/index_request.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/index/search/text_map.h"
#include "divan/index/views/field_map.h"
#include "divan/mango/find_request.h"
#include "divan/mango/options.h"
#include "divan/mango/sort.h"
#include "divan/selector/condition.h"
#include "divan/selector/selector.h"

namespace divan::mango {
namespace {

constexpr std::size_t kDigestBytes = 20;

Error invalid(std::string reason) { return {400, "invalid_index", std::move(reason)}; }

std::optional<std::string> name_member(Options& options, std::string_view name) {
  auto text = options.string(name);
  if (text && text->empty())
    throw Error(400, "invalid_empty_string", "Index name or ddoc cannot be empty string");
  return text;
}

IndexType parse_type(Options& options) {
  const std::string name = options.string("type").value_or("json");
  if (name == "nouveau") throw Error(503, "required index service unavailable", name);
  if (const auto type = index_type(name)) return *type;
  throw invalid("Invalid type for index: " + name);
}

// The member of design documents with the indexes of a type.
std::string_view member_of(IndexType type) { return type == IndexType::json ? "views" : "indexes"; }

// A selector in its normal form; {} if it is not given.
std::string parse_filter(Options& options, std::string_view name) {
  const auto value = options.find(name);
  if (!value) return "{}";
  if (!value->starts_with('{'))
    throw Error(400, "invalid_selector_json", fmt::format("Selector must be a JSON object, not: {}", *value));
  std::string filter;
  selector::append_selector(filter, selector::Selector::parse(*value).condition());
  return filter;
}

// The view's `map`.
std::string parse_json_index(std::string_view json) {
  if (!json.starts_with('{')) throw invalid(fmt::format("JSON indexes must be an object, not: {}", json));
  Options options(json);
  const Sort sort = Sort::parse(options.require("fields"));
  const std::string filter = parse_filter(options, "partial_filter_selector");
  options.end();
  std::string map;
  json::Writer writer(map);
  writer.begin_object().key("fields").begin_object();
  std::vector<selector::Path> paths;
  for (const auto& field : sort.fields) {
    if (std::ranges::find(paths, field.path) != paths.end())
      throw invalid(fmt::format("The field `{}` occurs twice.", field.name));
    paths.push_back(field.path);
    writer.key(field.name).string(sort.direction());
  }
  writer.end_object().key("partial_filter_selector").raw(filter).end_object();
  return map;
}

// `index` of a text index: what CouchDB stores, with all members.
std::string parse_text_index(std::string_view json) {
  if (!json.starts_with('{')) throw invalid(fmt::format("Text indexes must be an object, not: {}", json));
  Options options(json);
  std::string index;
  json::Writer writer(index);
  writer.begin_object();
  writer.key("default_analyzer").raw(options.find("default_analyzer").value_or("\"keyword\""));
  writer.key("default_field").raw(options.find("default_field").value_or("{}"));
  for (const auto* name : {"partial_filter_selector", "selector"})
    writer.key(name).raw(parse_filter(options, name));
  const auto fields = options.find("fields").value_or("[]");
  writer.key("fields").raw(fields == "[]" ? "\"all_fields\"" : fields);
  writer.key("index_array_lengths").boolean(options.boolean("index_array_lengths", true)).end_object();
  options.end();
  index::search::TextMap::parse(index);
  return index;
}

std::string view_of(std::string_view map, std::string_view definition) {
  std::string view;
  json::Writer writer(view);
  writer.begin_object().key("map").raw(map).key("reduce").string("_count");
  writer.key("options").begin_object().key("def").raw(definition).end_object().end_object();
  return view;
}

std::string text_index_of(const std::string& index) {
  std::string entry;
  json::Writer writer(entry);
  writer.begin_object().key("index").raw(index);
  writer.key("analyzer").raw(index::search::TextMap::parse(index).analyzer).end_object();
  return entry;
}

// Copies an object's member, such as `views`, or the views, with one of them replaced or removed.
struct Edit {
  std::string_view name;
  std::optional<std::string_view> value;  // nullopt: removes it
};
std::string edited(std::string_view object, const Edit& edit) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  bool found = false;
  json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (name != edit.name) {
      writer.key(name).raw(value);
    } else if (edit.value && !std::exchange(found, true)) {
      writer.key(name).raw(*edit.value);
    }
    return true;
  });
  if (edit.value && !found) writer.key(edit.name).raw(*edit.value);
  writer.end_object();
  return out;
}

}  // namespace

std::optional<IndexType> index_type(std::string_view name) {
  if (name == "json") return IndexType::json;
  if (name == "text") return IndexType::text;
  return std::nullopt;
}

IndexRequest IndexRequest::parse(std::string_view json) {
  Options options(json);
  const std::string_view definition = options.require("index");
  const IndexType type = parse_type(options);
  const auto name = name_member(options, "name");
  const auto design = name_member(options, "ddoc");
  options.integer("w", 2, 1);
  std::optional<bool> is_partitioned;
  if (const auto value = options.find("partitioned"); value && *value != "\"db_default\"") {
    if (*value != "true" && *value != "false")
      throw Error(400, "invalid_partitioned_value", fmt::format("Invalid value for partitioned: {}", *value));
    is_partitioned = *value == "true";
  }
  options.end();
  const std::string content =
      type == IndexType::json ? parse_json_index(definition) : parse_text_index(definition);
  std::string identity;
  json::Writer writer(identity);
  writer.begin_array().raw(content).string(design.value_or("")).string(name.value_or(""));
  if (is_partitioned) writer.boolean(*is_partitioned);
  writer.end_array();
  const std::string digest = to_hex(sha256(identity, kDigestBytes));
  return {.design_document = design_id(design.value_or(digest)),
          .name = name.value_or(digest),
          .type = type,
          .definition = type == IndexType::json ? view_of(content, definition) : text_index_of(content),
          .is_partitioned = is_partitioned};
}

std::optional<std::string> IndexRequest::add_to(std::string_view body) const {
  std::string whole(body);
  if (whole == "{}") {
    const auto options =
        is_partitioned ? fmt::format(R"(,"options":{{"partitioned":{}}})", *is_partitioned) : std::string();
    whole = fmt::format(R"({{"language":"{}"{}}})", index::views::kQueryLanguage, options);
  } else {
    check_partitioned(whole);
    if (!index::views::is_query(whole))
      throw Error(400, "invalid_ddoc_lang",
                  fmt::format("Existing design doc has an invalid language: {}",
                              json::member(whole, "language").value_or("\"javascript\"")));
  }
  const auto member = member_of(type);
  const std::string indexes(json::member(whole, member).value_or("{}"));
  const std::string new_indexes = edited(indexes, {name, definition});
  if (indexes == new_indexes) return std::nullopt;
  return edited(whole, {member, new_indexes});
}

void IndexRequest::check_partitioned(std::string_view body) const {
  const auto options = json::member(body, "options");
  const auto stored = options ? json::member(*options, "partitioned") : std::nullopt;
  const std::string_view wanted = !is_partitioned ? "" : *is_partitioned ? "true" : "false";
  if (stored.value_or("") == wanted) return;
  throw Error(400, "invalid_partitioned_option",
              fmt::format("Requested partitioned option does not match existing value on design document {}",
                          design_document));
}

std::optional<std::string> without_index(std::string_view body, IndexType type, std::string_view name) {
  std::string left(body);
  for (const auto one : {IndexType::json, IndexType::text}) {
    if (!name.empty() && one != type) continue;
    const std::string indexes(json::member(left, member_of(one)).value_or("{}"));
    const std::string rest = name.empty() ? "{}" : edited(indexes, {name, std::nullopt});
    if (rest == indexes) continue;
    const auto new_indexes = rest == "{}" ? std::nullopt : std::optional<std::string_view>(rest);
    left = edited(left, {member_of(one), new_indexes});
  }
  if (left == body) return std::nullopt;
  const bool has_indexes = json::member(left, "views") || json::member(left, "indexes");
  const auto options = json::member(left, "options");
  const bool is_only_option = options == R"({"partitioned":true})" || options == R"({"partitioned":false})";
  if (!has_indexes && is_only_option) left = edited(left, {"options", std::nullopt});
  const bool is_empty = left == fmt::format(R"({{"language":"{}"}})", index::views::kQueryLanguage);
  return is_empty ? "{}" : std::move(left);
}

std::vector<std::string> parse_bulk_delete(std::string_view json) {
  Options options(json);
  const std::string_view ids = options.require("docids");
  options.integer("w", 2, 1);
  options.end();
  std::vector<std::string> designs;
  const bool is_array = json::for_each_element(ids, [&](std::string_view element) {
    const auto name = json::string_value(element);
    if (!name) throw Error(400, "invalid_index_name", fmt::format("Invalid index name: {}", element));
    designs.push_back(design_id(*name));
    return true;
  });
  if (!is_array)
    throw Error(400, "invalid_bulk_docs",
                fmt::format("Bulk Delete requires an array of non-null docids. Docids: {}", ids));
  return designs;
}

}  // namespace divan::mango
