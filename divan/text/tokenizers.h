// The tokenizers of analyzers.
#pragma once

#include <memory>

#include "divan/text/tokenizer.h"

namespace divan::text {

/// The rules by which words are found. All but the last are those of Lucene 4.6, as CouchDB's analyzers use
/// them.
enum class TokenizerRules : std::uint8_t {
  keyword,     ///< the whole text, even if it is empty
  whitespace,  ///< what is between white space
  letter,      ///< runs of letters
  standard,    ///< Unicode's word breaks (word_breaks.h)
  classic,     ///< ClassicTokenizer (classic_tokenizer.h)
  email,       ///< UAX29URLEmailTokenizer (email_tokenizer.h)
  bigrams,     ///< standard, with pairs of East Asian characters (bigrams.h)
  dictionary   ///< standard, with words of dictionaries in scripts without spaces (dictionary_words.h)
};

/// A tokenizer of `text`.
std::unique_ptr<Tokenizer> make_tokenizer(TokenizerRules rules, std::string_view text);

}  // namespace divan::text
