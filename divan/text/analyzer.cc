#include "divan/text/analyzer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/text/languages.h"

namespace divan::text {
namespace {

using AnalyzerPtr = std::shared_ptr<const Analyzer>;

// Words of a tokenizer that pass filters.
class FilteredAnalyzer final : public Analyzer {
 public:
  FilteredAnalyzer(const Filters& filters, StopWords stop_words)
      : filters_(filters), stop_words_(std::move(stop_words)) {}

  void analyze(std::string_view utf8, const TokenVisitor& visit) const override {
    find_tokens(filters_, stop_words_, utf8, visit);
  }
  std::string normalize(std::string_view utf8) const override { return normalize_term(filters_, utf8); }
  bool is_keyword() const override {
    return filters_.rules == TokenizerRules::keyword && filters_.folding == CaseFolding::none;
  }

 private:
  const Filters filters_;
  const StopWords stop_words_;
};

const Analyzer& keyword_analyzer() {
  static const FilteredAnalyzer analyzer(find_language("keyword")->filters, {});
  return analyzer;
}

// One for each field.
class FieldAnalyzers final : public Analyzer {
 public:
  FieldAnalyzers(AnalyzerPtr fallback, std::map<std::string, AnalyzerPtr, std::less<>> fields)
      : fallback_(std::move(fallback)), fields_(std::move(fields)) {}

  // As CouchDB's _search_analyze: the text is that of the field to which queries without a field refer.
  void analyze(std::string_view utf8, const TokenVisitor& visit) const override {
    analyzer_for("default").analyze(utf8, visit);
  }
  std::string normalize(std::string_view utf8) const override {
    return analyzer_for("default").normalize(utf8);
  }

  const Analyzer& analyzer_for(std::string_view field) const override {
    if (field == "_id" || field == "_partition") return keyword_analyzer();
    const auto found = fields_.find(field);
    return found == fields_.end() ? *fallback_ : *found->second;
  }

 private:
  const AnalyzerPtr fallback_;
  const std::map<std::string, AnalyzerPtr, std::less<>> fields_;
};

AnalyzerPtr parse(const boost::json::value& definition, bool may_have_fields);

std::optional<StopWords> parse_stop_words(const boost::json::object& definition) {
  const auto* const list = definition.if_contains("stopwords");
  if (list == nullptr) return std::nullopt;
  const auto* const array = list->if_array();
  StopWords words;
  const auto reject = [] { throw bad_request("`stopwords` of an analyzer must be an array of strings."); };
  if (array == nullptr) reject();
  for (const auto& word : *array) {
    if (!word.is_string()) reject();
    words.add(std::string(word.get_string()));
  }
  return words;
}

AnalyzerPtr parse_fields(const boost::json::object& definition) {
  const auto* const fallback = definition.if_contains("default");
  const auto* const fields = definition.if_contains("fields");
  std::map<std::string, AnalyzerPtr, std::less<>> analyzers;
  if (fields != nullptr) {
    if (!fields->is_object()) throw bad_request("`fields` of the analyzer `perfield` must be an object.");
    for (const auto& [field, analyzer] : fields->get_object())
      analyzers[std::string(field)] = parse(analyzer, false);
  }
  return std::make_shared<FieldAnalyzers>(parse(fallback ? *fallback : "standard", false),
                                          std::move(analyzers));
}

AnalyzerPtr parse_named(const std::string& name, const boost::json::object& definition,
                        bool may_have_fields) {
  if (name == "perfield") {
    if (!may_have_fields) throw bad_request("The analyzer `perfield` cannot be that of a field.");
    return parse_fields(definition);
  }
  const auto* const language = find_language(name);
  if (language == nullptr) {
    throw bad_request(fmt::format("Unknown analyzer `{}`; expected one of {}, perfield.", name,
                                  fmt::join(language_names(), ", ")));
  }
  auto words = parse_stop_words(definition);
  if (!language->has_stop_words) words.reset();
  return std::make_shared<FilteredAnalyzer>(language->filters,
                                            words ? std::move(*words) : stop_words(language->words));
}

AnalyzerPtr parse(const boost::json::value& definition, bool may_have_fields) {
  if (const auto* const name = definition.if_string())
    return parse_named(std::string(*name), {}, may_have_fields);
  const auto* const object = definition.if_object();
  if (object == nullptr) throw bad_request("An analyzer must be a string or an object.");
  const auto* const name = object->if_contains("name");
  if (name == nullptr || !name->is_string()) throw bad_request("`name` of an analyzer must be a string.");
  return parse_named(std::string(name->get_string()), *object, may_have_fields);
}

}  // namespace

const Analyzer& Analyzer::analyzer_for(std::string_view field) const {
  return field == "_id" || field == "_partition" ? keyword_analyzer() : *this;
}

std::shared_ptr<const Analyzer> make_analyzer(std::string_view json) {
  return parse(json::parse(json), true);
}

}  // namespace divan::text
