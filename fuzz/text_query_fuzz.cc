// A definition of a text index, a selector and a document, in three lines: an error, or a query that finds
// the document in the index if it matches the selector. Strings are ASCII: others may be equal by collation,
// but not as terms.
#include "divan/mango/text_query.h"

#include <algorithm>
#include <charconv>

#include "divan/base/json.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
namespace json = divan::json;
namespace mango = divan::mango;
namespace search = divan::index::search;
namespace selector = divan::selector;
namespace text = divan::text;

namespace {

using Kind = search::Query::Kind;

double number_of(std::string_view json) {
  double number = 0;
  std::from_chars(json.data(), json.data() + json.size(), number);
  return number;
}

// Words and ids are not compared: the test of `$text` is always true.
bool finds(const search::Query& query, const std::vector<search::Field>& fields) {
  if (query.kind == Kind::boolean) {
    const auto is_found = [&](const search::Clause& clause) { return finds(clause.query, fields); };
    check(!query.clauses.empty());
    if (query.clauses.front().occur == search::Occur::must)
      return std::ranges::all_of(query.clauses, is_found);
    return std::ranges::any_of(query.clauses, is_found);
  }
  if (query.field == search::kDefaultTextField || query.field == "_id" || query.kind == Kind::none)
    return true;
  return std::ranges::any_of(fields, [&](const search::Field& field) {
    if (field.name != query.field) return false;
    const auto term = json::string_value(field.json).value_or(field.json);
    switch (query.kind) {
      case Kind::term: return !field.is_analyzed && term == query.text;
      case Kind::prefix: return !field.is_analyzed && term.starts_with(query.text);
      case Kind::number_range: return is_in_range(query, number_of(field.json));
      default: check(false); return false;
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view input = divan::fuzz::text_of(data, size);
  const bool is_ascii =
      std::ranges::all_of(input, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  const bool compares_bytes = is_ascii && input.find('\\') == std::string_view::npos;
  std::string lines[3];
  for (auto& line : lines) {
    const auto end = std::min(input.find('\n'), input.size());
    if (!answers(400, [&] { line = json::compact(input.substr(0, end)); })) return 0;
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  if (!lines[2].starts_with('{')) return 0;
  answers(400, [&] {
    const auto map = search::TextMap::parse(lines[0]);
    const auto analyzer = text::make_analyzer(map.analyzer);
    const auto parsed = selector::Selector::parse(lines[1], selector::TextOperator::allowed);
    const auto query = mango::text_query(parsed.condition(), map, *analyzer);
    bool matches = false, is_in_index = false;
    std::vector<search::Field> fields;
    const auto has_text = [](const selector::Condition&) { return true; };
    const bool is_known = answers(413, [&] {
      matches = parsed.matches(lines[2], has_text);
      is_in_index = !map.filter || map.filter->matches(lines[2]);
      map.visit_fields(lines[2], *analyzer, [&](const search::Field& field) { fields.push_back(field); });
    });
    if (!query) return;
    search::to_lucene(query->query);
    if (is_known && matches && is_in_index && compares_bytes) check(finds(query->query, fields));
  });
  return 0;
}
