#include "divan/index/search/search_kind.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/index/views/js_functions.h"

namespace divan::index::search {
namespace {

// The version of the rows' layout, and of what analyzers return; part of every signature, so that a change
// of it rebuilds all indexes.
constexpr std::string_view kRowLayout = "full text 1";
constexpr std::string_view kDefaultAnalyzer = "\"standard\"";
constexpr std::size_t kShownBytes = 60;

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

// The fields that a function in JavaScript computes.
class JsFieldSource final : public FieldSource {
 public:
  JsFieldSource(const views::Origin& origin, const Definition& definition, const std::string& signature,
                js::Pool& pool, std::shared_ptr<views::SlowDocuments> slow)
      : functions_(origin, {{definition.name, definition.function}}, signature, pool, std::move(slow),
                   {"Search index", "Index function"}) {}

  void map(const views::SourceTexts& texts, const js::Limits& limits, SearchBatch& batch) const override {
    functions_.map(
        texts, limits, batch, [&](std::size_t document, std::size_t, std::span<const js::Emitted> emitted) {
          const auto refuse = [&](std::string_view reason) { batch.add_failure(document, reason); };
          batch.add_fields(document, fields_of(emitted, refuse));
        });
  }

 private:
  const views::JsFunctions functions_;
};

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

std::vector<IndexPtr> SearchKind::indexes(const std::string& design_id, std::string_view body,
                                          const docs::Database* database) const {
  std::vector<IndexPtr> indexes;
  const auto origin = views::origin_of(design_id, body, database);
  for (const auto& definition : definitions_of(body)) {
    auto signature = signature_of(definition, origin.lib);
    auto fields = std::make_shared<JsFieldSource>(origin, definition, signature, pool_, slow_);
    indexes.push_back(std::make_shared<SearchIndex>(
        SearchIndex::Definition{.design_document = design_id,
                                .name = definition.name,
                                .signature = std::move(signature),
                                .is_automatic = builds_itself(body, kKind),
                                .is_partitioned = is_partitioned(body, database),
                                .analyzer = analyzer_of(design_id, definition),
                                .fields = std::move(fields)},
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
