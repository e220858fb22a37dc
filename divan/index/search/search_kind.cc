#include "divan/index/search/search_kind.h"

#include <fmt/core.h>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/index/views/field_map.h"

namespace divan::index::search {
namespace {

// The version of the rows' layout, and of what analyzers return; part of every signature, so that a change
// of it rebuilds all indexes.
constexpr std::string_view kRowLayout = "full text 1";
// The same for the fields that indexes of Mango make of documents.
constexpr std::string_view kMapLayout = "text map 2";
constexpr std::string_view kDefaultAnalyzer = "\"standard\"";

Error invalid(const std::string& design_id, std::string_view what) {
  return {400, "invalid_design_doc", fmt::format("`{}` {}", design_id, what)};
}

// As it is in a design document.
struct Definition {
  std::string name;
  std::string function;                // empty: an index of Mango
  std::string analyzer;                // JSON
  std::shared_ptr<const TextMap> map;  // of an index of Mango
};

std::shared_ptr<const TextMap> parse_map(const std::string& design_id, std::string_view name,
                                         std::string_view json) {
  try {
    return std::make_shared<const TextMap>(TextMap::parse(json));
  } catch (const Error& error) {
    throw invalid(design_id, fmt::format("has an invalid index `{}`: {}", name, error.reason()));
  }
}

// Those with a function: CouchDB accepts all others, too. In the language of Mango, those with an object.
std::vector<Definition> definitions_of(const std::string& design_id, std::string_view body) {
  std::vector<Definition> definitions;
  const auto object = json::member(body, kKind);
  const bool is_query = views::is_query(body);
  if (!object || !(is_query || views::is_javascript(body))) return definitions;
  const bool is_object =
      json::for_each_member(*object, [&](std::string_view raw_name, std::string_view value) {
        Definition definition{.name = json::unescape(raw_name)};
        const auto index = json::member(value, "index").value_or("");
        if (is_query) {
          definition.map = parse_map(design_id, definition.name, index);
          definition.analyzer = definition.map->analyzer;
        } else if (const auto source = json::string_value(index)) {
          definition.function = *source;
          definition.analyzer = kDefaultAnalyzer;
        } else {
          return true;
        }
        if (const auto analyzer = json::member(value, "analyzer")) definition.analyzer = *analyzer;
        definitions.push_back(std::move(definition));
        return true;
      });
  if (is_query && !is_object) throw invalid(design_id, "`indexes` must be an object.");
  return definitions;
}

std::shared_ptr<const text::Analyzer> analyzer_of(const std::string& design_id,
                                                  const Definition& definition) {
  try {
    return text::make_analyzer(definition.analyzer);
  } catch (const Error& error) {
    throw invalid(design_id,
                  fmt::format("has an invalid analyzer of `{}`: {}", definition.name, error.reason()));
  }
}

bool is_partitioned(std::string_view body, const docs::Database* database) {
  if (database == nullptr || !database->is_partitioned()) return false;
  const auto options = json::member(body, "options");
  return !options || json::member(*options, "partitioned") != "false";
}

std::string signature_of(const Definition& definition, std::string_view lib) {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().string(kRowLayout).string(lib);
  writer.string(definition.function).string(definition.analyzer);
  if (definition.map) writer.string(kMapLayout).string(definition.map->json);
  writer.end_array();
  return sha256(text, kSignatureBytes);
}

}  // namespace

std::vector<IndexPtr> SearchKind::indexes(const std::string& design_id, std::string_view body,
                                          const docs::Database* database) const {
  std::vector<IndexPtr> indexes;
  const auto origin = views::origin_of(design_id, body, database);
  for (const auto& definition : definitions_of(design_id, body)) {
    auto signature = signature_of(definition, origin.lib);
    std::shared_ptr<const views::JsFunctions> functions;
    if (!definition.map) {
      functions = std::make_shared<views::JsFunctions>(
          origin, views::JsFunctions::Sources{{definition.name, definition.function}}, signature, pool_,
          slow_, views::JsFunctions::Terms{"Search index", "Index function"});
    }
    indexes.push_back(std::make_shared<SearchIndex>(
        SearchIndex::Definition{.design_document = design_id,
                                .name = definition.name,
                                .signature = std::move(signature),
                                .is_automatic = builds_itself(body, kKind),
                                .is_partitioned = is_partitioned(body, database),
                                .analyzer = analyzer_of(design_id, definition),
                                .functions = std::move(functions),
                                .text_map = definition.map},
        limits_));
  }
  return indexes;
}

void SearchKind::check(const std::string& design_id, std::string_view body,
                       const docs::Checkpoint& checkpoint) const {
  const auto origin = views::origin_of(design_id, body, nullptr);
  for (const auto& definition : definitions_of(design_id, body)) {
    if (checkpoint) checkpoint();
    analyzer_of(design_id, definition);
    if (definition.map) continue;
    pool_.check({definition.name, definition.function},
                fmt::format("index function in the '{}' search index", definition.name), origin.root());
  }
}

}  // namespace divan::index::search
