#include "divan/text/filters.h"

#include <algorithm>
#include <stdexcept>

namespace divan::text {
namespace {

// A filter of the classic tokenizer's words: U.S.A. to USA, O'Reilly's to O'Reilly.
std::string_view normal_form(const Word& word, std::string_view text, std::string& buffer) {
  if (word.kind == WordKind::apostrophe && (text.ends_with("'s") || text.ends_with("'S"))) {
    return text.substr(0, text.size() - 2);
  }
  if (word.kind != WordKind::acronym) return text;
  buffer.clear();
  std::ranges::copy_if(text, std::back_inserter(buffer), [](char byte) { return byte != '.'; });
  return buffer;
}

}  // namespace

void find_tokens(const Filters& filters, const StopWords& stop_words, std::string_view utf8,
                 const TokenVisitor& visit) {
  if (utf8.size() > kMaxTextBytes) throw std::length_error("text to analyze");
  const auto tokenizer = make_tokenizer(filters.rules, utf8);
  Word word;
  Token token;
  std::string buffer;
  while (tokenizer->next(word)) {
    auto text = normal_form(word, utf8.substr(word.begin, word.end - word.begin), buffer);
    if (filters.removes_possessive) text = without_possessive(text);
    if (!filters.articles.empty()) text = without_article(text, filters.articles);
    if (filters.folds_width) {
      buffer = text;
      fold_width(buffer);
      text = buffer;
    }
    fold_case(filters.folding, text, token.term);
    if (stop_words.contains(token.term)) continue;
    if (filters.folds_to_ascii) fold_to_ascii(token.term);
    stem(filters.stemmer, token.term);
    if (token.term.empty() && filters.rules != TokenizerRules::keyword) continue;
    token.position = word.position;
    token.begin = word.begin;
    token.end = word.end;
    visit(token);
  }
}

std::string normalize_term(const Filters& filters, std::string_view utf8) {
  std::string text(utf8), term;
  if (filters.folds_width) fold_width(text);
  fold_case(filters.folding, text, term);
  if (filters.folds_to_ascii) fold_to_ascii(term);
  return term;
}

}  // namespace divan::text
