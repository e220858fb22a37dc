// The classic tokenizer: the rules of Lucene's StandardTokenizer before Unicode's word breaks
// (https://lucene.apache.org/core/4_6_1/analyzers-common/org/apache/lucene/analysis/standard/ClassicTokenizer.html).
//
// Of these the longest match is a word, of equally long ones the first:
//   letters and digits                    word
//   letters ' letters ...                 apostrophe     O'Reilly
//   letter . letter . ...                 acronym        U.S.A.
//   letters & or @ letters                word           AT&T
//   an address of e-mail                  word           first.last@example.com
//   letters and digits . ...              word           www.example.com, and with a dot at the end, which is
//   left out parts with _ - / . or , between them, every other of which has a digit    word    192.168.0.1,
//   XL-5000 a Chinese or Japanese character       ideograph
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
