// The classic tokenizer: the rules of Lucene's StandardTokenizer before Unicode's word breaks
// (https://lucene.apache.org/core/4_6_1/analyzers-common/org/apache/lucene/analysis/standard/ClassicTokenizer.html).
//
// The longest match of these patterns is a word, the first of equally long ones:
//
// - letters and digits
// - letters with apostrophes between them: O'Reilly (WordKind::apostrophe)
// - single letters, each with a dot after it: U.S.A. (WordKind::acronym)
// - letters, & or @, letters: AT&T
// - an email address: first.last@example.com
// - letters and digits with dots between them: www.example.com. A dot at the end is left out.
// - parts with _ - / . or , between them, of which every other one has a digit: 192.168.0.1, XL-5000
// - a Chinese or Japanese character (WordKind::ideograph)
//
// Characters outside of the Basic Multilingual Plane belong to no word.
#pragma once

#include "divan/text/tokenizer.h"

namespace divan::text {

/// See Tokenizer.
class ClassicTokenizer final : public Tokenizer {
 public:
  explicit ClassicTokenizer(std::string_view text) : text_(text) {}

  bool next(Word& word) override;

 private:
  Word match(std::size_t begin);
  std::size_t match_email(std::size_t begin);

  const std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t position_ = 0;
  std::size_t no_email_before_ = 0;  // no address begins before this offset
};

}  // namespace divan::text
