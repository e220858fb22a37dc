// How words become terms.
#pragma once

#include <string_view>

#include "divan/text/folding.h"
#include "divan/text/stemmer.h"
#include "divan/text/stop_words.h"
#include "divan/text/token.h"
#include "divan/text/tokenizers.h"

namespace divan::text {

/// What an analyzer does with the words of a tokenizer, in this order. A value type.
struct Filters {
  TokenizerRules rules = TokenizerRules::standard;
  bool removes_possessive = false;           ///< 's
  std::string_view articles;                 ///< that are removed with their apostrophe; a space follows each
  bool folds_width = false;                  ///< of East Asian characters
  CaseFolding folding = CaseFolding::lower;  // then stop words are left out
  bool folds_to_ascii = false;
  Stemmer stemmer = Stemmer::none;
};

/// Calls `visit` for each token of a text: see Analyzer::analyze().
void find_tokens(const Filters& filters, const StopWords& stop_words, std::string_view utf8,
                 const TokenVisitor& visit);

/// See Analyzer::normalize().
std::string normalize_term(const Filters& filters, std::string_view utf8);

}  // namespace divan::text
