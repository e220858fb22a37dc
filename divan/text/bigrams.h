// Words of Chinese, Japanese and Korean: two characters each, as Lucene's CJKBigramFilter.
#pragma once

#include "divan/text/word_breaks.h"

namespace divan::text {

/// The words of WordBreaks; of those next to each other in Han, Hiragana, Katakana and Hangul, all pairs of
/// neighbours are words, or the character if it is alone. See Tokenizer.
class Bigrams final : public Tokenizer {
 public:
  explicit Bigrams(std::string_view text) : text_(text), words_(text) { read(); }

  bool next(Word& word) override;

 private:
  void read();
  bool next_of_run(Word& word);

  const std::string_view text_;
  WordBreaks words_;
  Word ahead_;  // the next word of words_
  bool has_ahead_ = false, is_ahead_in_run_ = false;
  // The run from its current character on; empty outside of runs.
  std::size_t first_ = 0, second_ = 0, run_end_ = 0;
  bool is_first_paired_ = false;
  std::uint32_t position_ = 0;
};

}  // namespace divan::text
