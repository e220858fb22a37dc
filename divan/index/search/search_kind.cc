#include "divan/index/search/search_kind.h"

#include <fmt/core.h>

#include "divan/base/digest.h"
#include "divan/base/json.h"

namespace divan::index::search {
namespace {

// The version of the rows' layout, and of what analyzers return; part of every signature, so that a change
// of it rebuilds all indexes.
constexpr std::string_view kRowLayout = "full text 1";
constexpr std::string_view kDefaultAnalyzer = "\"standard\"";

Error invalid(const std::string& design_id, std::string_view what) {
  return {400, "invalid_design_doc", fmt::format("`{}` {}", design_id, what)};
}

// As it is in a design document.
struct Definition {
  std::string name;
  std::string function;
  std::string analyzer;  // JSON
};

// Those with a function: CouchDB accepts all others, too.
std::vector<Definition> definitions_of(std::string_view body) {
  std::vector<Definition> definitions;
  const auto object = json::member(body, kKind);
  if (!object || !views::is_javascript(body)) return definitions;
  json::for_each_member(*object, [&](std::string_view raw_name, std::string_view value) {
    const auto function = json::member(value, "index");
    const auto source = function ? json::string_value(*function) : std::nullopt;
    if (!source) return true;
    definitions.push_back(
        {.name = json::unescape(raw_name),
         .function = *source,
         .analyzer = std::string(json::member(value, "analyzer").value_or(kDefaultAnalyzer))});
    return true;
  });
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
  writer.string(definition.function).string(definition.analyzer).end_array();
  return sha256(text, kSignatureBytes);
}

}  // namespace

std::vector<IndexPtr> SearchKind::indexes(const std::string& design_id, std::string_view body,
                                          const docs::Database* database) const {
  std::vector<IndexPtr> indexes;
  const auto origin = views::origin_of(design_id, body, database);
  for (const auto& definition : definitions_of(body)) {
    auto signature = signature_of(definition, origin.lib);
    auto functions = std::make_shared<views::JsFunctions>(
        origin, views::JsFunctions::Sources{{definition.name, definition.function}}, signature, pool_, slow_,
        views::JsFunctions::Terms{"Search index", "Index function"});
    indexes.push_back(std::make_shared<SearchIndex>(
        SearchIndex::Definition{.design_document = design_id,
                                .name = definition.name,
                                .signature = std::move(signature),
                                .is_automatic = builds_itself(body, kKind),
                                .is_partitioned = is_partitioned(body, database),
                                .analyzer = analyzer_of(design_id, definition),
                                .functions = std::move(functions)},
        limits_));
  }
  return indexes;
}

void SearchKind::check(const std::string& design_id, std::string_view body,
                       const docs::Checkpoint& checkpoint) const {
  const auto origin = views::origin_of(design_id, body, nullptr);
  for (const auto& definition : definitions_of(body)) {
    if (checkpoint) checkpoint();
    analyzer_of(design_id, definition);
    pool_.check({definition.name, definition.function},
                fmt::format("index function in the '{}' search index", definition.name), origin.root());
  }
}

}  // namespace divan::index::search
