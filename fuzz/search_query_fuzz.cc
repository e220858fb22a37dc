// Searches of clients: a query, or the parameters of a search. Any text is refused with an error of the
// client's, or is a query whose terms can be matched and highlighted; terms that match are where they are
// looked for.
#include "divan/base/json.h"
#include "divan/index/search/highlighter.h"
#include "divan/index/search/params.h"
#include "divan/index/search/query_parser.h"
#include "divan/index/search/term_matcher.h"
#include "fuzz/check.h"

namespace {

using divan::fuzz::answers;
using divan::fuzz::check;
using namespace divan::index::search;

constexpr std::string_view kTerms[] = {"", "a", "ab", "abc", "b", "ü", "üb", "z\xf0\x9f\x98\x80z", "10"};

void use(const Query& query) {
  check(query.boost >= 0);
  switch (query.kind) {
    case Query::Kind::boolean:
      check(!query.clauses.empty());
      for (const auto& clause : query.clauses) use(clause.query);
      return;
    case Query::Kind::phrase:
      check(query.terms.size() > 1);
      for (std::size_t i = 1; i < query.terms.size(); ++i)
        check(query.terms[i - 1].second <= query.terms[i].second);
      return;
    case Query::Kind::term: check(divan::is_utf8(query.text)); return;
    case Query::Kind::number_range: check(!(query.least > query.least) && query.least == query.least); return;
    case Query::Kind::all:
    case Query::Kind::none: return;
    default: break;
  }
  const TermMatcher matcher(query);
  for (const auto term : kTerms) {
    const auto similarity = matcher.match(term);
    if (!similarity) continue;
    check(*similarity > 0 && *similarity <= 1);
    check(term >= matcher.begin() && (matcher.end().empty() || term < matcher.end()));
  }
}

void parse(std::string_view text) {
  for (const auto* const name : {"\"standard\"", "\"keyword\"", "\"french\""}) {
    const auto analyzer = divan::text::make_analyzer(name);
    answers(400, [&] {
      const auto query = parse_query(text, *analyzer);
      use(query);
      const Highlighter highlighter(query, {.before = "<", .after = ">", .fragments = 3, .size = 10});
      for (const auto& fragment : highlighter.fragments(*analyzer, "ab abc, b ü; a b z"))
        check(divan::is_utf8(fragment) && fragment.find('<') != std::string::npos);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto input = divan::fuzz::text_of(data, size);
  parse(input);
  answers(400, [&] {
    const auto json = divan::json::compact(input);
    parse_params(params_of_body(json));
  });
  answers(400, [&] {
    const auto bookmark = Bookmark::decode(input);
    check(Bookmark::decode(bookmark.encode()).encode() == bookmark.encode());
  });
  return 0;
}
