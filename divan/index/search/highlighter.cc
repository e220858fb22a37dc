#include "divan/index/search/highlighter.h"

#include <algorithm>

#include "divan/index/search/rows.h"
#include "divan/text/characters.h"

namespace divan::index::search {
namespace {

// So many bytes of a text are analyzed in the time in which an entry is read.
constexpr std::size_t kBytesOfAnEntry = 2;

struct Fragment {
  std::string text;
  std::set<std::string> found;  // terms
};

}  // namespace

Highlighter::Highlighter(const Query& query, HighlightStyle style) : style_(std::move(style)) { add(query); }

void Highlighter::add(const Query& query) {
  switch (query.kind) {
    case Query::Kind::term: terms_.insert(query.text); break;
    case Query::Kind::phrase:
      for (const auto& [term, position] : query.terms) terms_.insert(term);
      break;
    case Query::Kind::prefix:
    case Query::Kind::wildcard:
    case Query::Kind::regex:
    case Query::Kind::fuzzy:
    case Query::Kind::text_range: matchers_.emplace_back(query); break;
    case Query::Kind::boolean:
      for (const auto& clause : query.clauses) {
        if (clause.occur != Occur::must_not) add(clause.query);
      }
      break;
    default: break;
  }
}

std::uint64_t Highlighter::cost(std::string_view text) const {
  std::uint64_t cost = text.size() * (1 + matchers_.size()) / kBytesOfAnEntry;
  // The time is proportional to the size, however it is divided into terms.
  for (const auto& matcher : matchers_) cost += matcher.cost(text);
  return cost;
}

bool Highlighter::matches(const std::string& term) const {
  // The index has no longer terms.
  if (term.size() > kMaxTermBytes) return false;
  return terms_.contains(term) ||
         std::ranges::any_of(matchers_, [&](const auto& one) { return one.match(term).has_value(); });
}

std::vector<std::string> Highlighter::fragments(const text::Analyzer& analyzer, std::string_view text) const {
  std::vector<Fragment> fragments(1);
  std::size_t done = 0;        // bytes of the text that are in a fragment
  std::size_t characters = 0;  // up to `done`
  // Words that overlap, as pairs of characters do, are shown as one.
  std::size_t word_begin = 0, word_end = 0;
  std::size_t match_begin = 0, match_end = 0;
  std::set<std::string> found;
  const auto end_word = [&] {
    if (word_begin == word_end) return;
    // A fragment ends after the word before the one with which it would be full.
    const auto characters_after = characters + text::count_characters(text.substr(done, word_end - done));
    if (characters_after >= style_.size * fragments.size() && done > 0) fragments.emplace_back();
    auto& fragment = fragments.back();
    if (found.empty()) {
      fragment.text += text.substr(done, word_end - done);
    } else {
      fragment.text += text.substr(done, match_begin - done);
      fragment.text.append(style_.before)
          .append(text.substr(match_begin, match_end - match_begin))
          .append(style_.after);
      fragment.text += text.substr(match_end, word_end - match_end);
    }
    fragment.found.merge(found);
    found.clear();
    done = word_end;
    characters = characters_after;
  };
  analyzer.analyze(text, [&](const text::Token& token) {
    if (token.begin >= word_end) {
      end_word();
      word_begin = token.begin;
    }
    word_end = std::max(word_end, token.end);
    if (!matches(token.term)) return;
    if (found.empty()) match_begin = token.begin;
    match_end = token.end;
    found.insert(token.term);
  });
  end_word();
  fragments.back().text += text.substr(done);
  std::erase_if(fragments, [](const auto& fragment) { return fragment.found.empty(); });
  std::ranges::stable_sort(fragments,
                           [](const auto& a, const auto& b) { return a.found.size() > b.found.size(); });
  std::vector<std::string> best;
  for (auto& fragment : fragments) {
    if (best.size() < style_.fragments) best.push_back(std::move(fragment.text));
  }
  return best;
}

}  // namespace divan::index::search
