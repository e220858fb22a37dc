// The standard tokenizer: Unicode's word breaks (https://www.unicode.org/reports/tr29/), as Lucene 4 has
// them.
//
// A word is what is between two breaks and has a letter, digit or ideograph. Some of the rules are about one
// character between two others: `can't`, `3.14`, `a_b` are words. Rules of the Unicode standard refer to the
// property Word_Break, which ICU has. ICU's own break rules are not used: they are adapted to locales, and
// join words at `@` and break them at `:`, which neither the standard nor Lucene does.
//
// In addition, as in Lucene: each Han or Hiragana character is a word, and so is each run of characters of
// a script without spaces (Line_Break=SA). Emoji are no words, which later versions of Lucene changed.
#pragma once

#include "divan/text/tokenizer.h"

namespace divan::text {

/// See Tokenizer.
class WordBreaks final : public Tokenizer {
 public:
  explicit WordBreaks(std::string_view text) : text_(text) { read(); }

  bool next(Word& word) override;

  /// As next(), but only a word that begins at the current place, whatever its length; returns false if there
  /// is none, and the place is then moved past its character. There must be a character (at() < text.size()).
  bool next_here(Word& word);
  /// The place from which the next word is searched for.
  std::size_t at() const { return at_; }
  /// Moves the place, which must be the start of a character.
  void move(std::size_t at) {
    end_ = at;
    read();
  }

 private:
  void read();
  bool joins_over_mark(std::uint8_t last, Word& word);

  std::string_view text_;
  // The current character: its start, its end with the characters after it that rules ignore, its class.
  std::size_t at_ = 0, end_ = 0;
  std::uint8_t class_ = 0;
  std::uint32_t position_ = 0;
};

}  // namespace divan::text
