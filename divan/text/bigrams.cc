#include "divan/text/bigrams.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

bool is_hangul(std::string_view word) {
  for (std::size_t at = 0; at < word.size();) {
    const UChar32 character = next_character(word, at);
    UErrorCode status = U_ZERO_ERROR;
    if (character < 0x1100 || uscript_getScript(character, &status) != USCRIPT_HANGUL) return false;
  }
  return true;
}

}  // namespace

bool Bigrams::next(Word& word) {
  while (true) {
    if (first_ < run_end_ && next_of_run(word)) return true;
    if (!has_ahead_) return false;
    if (!is_ahead_in_run_) {
      word = ahead_;
      word.position = position_++;
      read();
      return true;
    }
    first_ = second_ = ahead_.begin;
    next_character(text_, second_);
    run_end_ = ahead_.end;
    is_first_paired_ = false;
    read();
  }
}

// Moves to the next character of the run. Returns false if it has ended without another word.
bool Bigrams::next_of_run(Word& word) {
  if (second_ == run_end_ && has_ahead_ && is_ahead_in_run_ && ahead_.begin == run_end_) {
    run_end_ = ahead_.end;
    read();
  }
  word = {first_, second_, 0, WordKind::ideograph};
  const bool is_pair = second_ < run_end_;
  first_ = second_;
  if (is_pair) {
    next_character(text_, second_);
    word.end = second_;
  }
  if (!is_pair && is_first_paired_) return false;
  is_first_paired_ = true;
  word.position = position_++;
  return true;
}

void Bigrams::read() {
  has_ahead_ = words_.next(ahead_);
  if (!has_ahead_) return;
  switch (ahead_.kind) {
    case WordKind::ideograph:
    case WordKind::hiragana:
    case WordKind::katakana: is_ahead_in_run_ = true; return;
    default: is_ahead_in_run_ = is_hangul(text_.substr(ahead_.begin, ahead_.end - ahead_.begin));
  }
}

}  // namespace divan::text
