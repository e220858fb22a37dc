#include "divan/text/word_breaks.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <array>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

// Classes of characters: the values of Word_Break, and these.
enum Class : std::uint8_t {
  kOther = U_WB_OTHER,
  kLetter = U_WB_ALETTER,
  kKatakana = U_WB_KATAKANA,
  kNumeric = U_WB_NUMERIC,
  kExtendNumLet = U_WB_EXTENDNUMLET,  // _
  kHebrew = U_WB_HEBREW_LETTER,
  kMidLetter = U_WB_MIDLETTER,
  kMidNum = U_WB_MIDNUM,
  kMidNumLet = U_WB_MIDNUMLET,
  kSingleQuote = U_WB_SINGLE_QUOTE,
  kDoubleQuote = U_WB_DOUBLE_QUOTE,
  kIgnored = 100,  // Extend, Format and ZWJ belong to the character before them (WB4)
  kIdeograph,
  kSouthEastAsian,
  kHiragana,
  kNewline
};

bool is_south_east_asian(UChar32 character) {
  return u_getIntPropertyValue(character, UCHAR_LINE_BREAK) == U_LB_COMPLEX_CONTEXT;
}

std::uint8_t look_up_class(UChar32 character) {
  const auto word_break = u_getIntPropertyValue(character, UCHAR_WORD_BREAK);
  switch (word_break) {
    case U_WB_EXTEND:
    case U_WB_FORMAT:
    case U_WB_ZWJ: return is_south_east_asian(character) ? kSouthEastAsian : kIgnored;
    case U_WB_OTHER: {
      if (is_south_east_asian(character)) return kSouthEastAsian;
      UErrorCode status = U_ZERO_ERROR;
      const auto script = uscript_getScript(character, &status);
      if (script == USCRIPT_HAN) return kIdeograph;
      return script == USCRIPT_HIRAGANA ? kHiragana : kOther;
    }
    case U_WB_CR:
    case U_WB_LF:
    case U_WB_NEWLINE: return kNewline;
    case U_WB_REGIONAL_INDICATOR:
    case U_WB_WSEGSPACE: return kOther;
    default: return static_cast<std::uint8_t>(word_break);
  }
}

// Those of the characters up to U+2FFF, which are most in texts that have spaces.
using Classes = std::array<std::uint8_t, 0x3000>;

Classes look_up_classes() {
  Classes classes{};
  for (std::size_t character = 0; character < classes.size(); ++character)
    classes[character] = look_up_class(static_cast<UChar32>(character));
  return classes;
}

std::uint8_t class_of(UChar32 character) {
  static const Classes classes = look_up_classes();
  const auto index = static_cast<std::size_t>(character);
  return index < classes.size() ? classes[index] : look_up_class(character);
}

bool is_letter(std::uint8_t value) { return value == kLetter || value == kHebrew; }

bool is_word_begin(std::uint8_t value) {
  return is_letter(value) || value == kNumeric || value == kKatakana || value == kExtendNumLet;
}

// WB5, WB8 to WB10, WB13 to WB13b.
bool joins(std::uint8_t last, std::uint8_t next) {
  if (next == kExtendNumLet) return true;
  if (next == kKatakana) return last == kKatakana || last == kExtendNumLet;
  return last != kKatakana && (is_letter(next) || next == kNumeric);
}

// A character that may join `last` with what follows it: WB6, WB7, WB11, WB12, WB7a to WB7c.
bool is_mark_after(std::uint8_t last, std::uint8_t mark) {
  if (is_letter(last) && (mark == kMidLetter || mark == kMidNumLet || mark == kSingleQuote)) return true;
  if (last == kNumeric) return mark == kMidNum || mark == kMidNumLet || mark == kSingleQuote;
  return last == kHebrew && mark == kDoubleQuote;
}

bool joins_over(std::uint8_t last, std::uint8_t mark, std::uint8_t next) {
  if (mark == kDoubleQuote) return next == kHebrew;
  return is_letter(last) ? is_letter(next) : next == kNumeric;
}

bool is_too_long(std::string_view word) {
  return word.size() > kMaxWordUnits && utf16_units(word) > kMaxWordUnits;
}

}  // namespace

bool WordBreaks::next(Word& word) {
  while (at_ < text_.size()) {
    if (!next_here(word)) continue;
    word.position = position_++;
    if (!is_too_long(text_.substr(word.begin, word.end - word.begin))) return true;
  }
  return false;
}

bool WordBreaks::next_here(Word& word) {
  word = {at_, end_, 0, WordKind::word};
  const auto first = class_;
  read();
  switch (first) {
    case kIdeograph: word.kind = WordKind::ideograph; return true;
    case kHiragana: word.kind = WordKind::hiragana; return true;
    case kSouthEastAsian:
      word.kind = WordKind::south_east_asian;
      for (; class_ == kSouthEastAsian; read()) word.end = end_;
      return true;
    default: break;
  }
  if (!is_word_begin(first)) return false;
  if (first == kKatakana) word.kind = WordKind::katakana;
  bool has_letter = first != kExtendNumLet;
  auto last = first;
  while (true) {
    if (joins(last, class_)) {
      if (class_ != kKatakana) word.kind = WordKind::word;
      has_letter |= class_ != kExtendNumLet;
      last = class_;
      word.end = end_;
      read();
    } else if (!is_mark_after(last, class_) || !joins_over_mark(last, word)) {
      return has_letter;
    }
  }
}

// The current character is a mark. Returns true if the word goes on after it, where the place then is.
bool WordBreaks::joins_over_mark(std::uint8_t last, Word& word) {
  const auto mark_at = at_, mark_end = end_;
  const auto mark = class_;
  read();
  if (joins_over(last, mark, class_)) return true;
  at_ = mark_at;
  end_ = mark_end;
  class_ = mark;
  if (last == kHebrew && mark == kSingleQuote) {  // WB7a
    word.end = mark_end;
    read();
  }
  return false;
}

// Reads the character at end_. At the end of the text its class is kNewline, which joins nothing.
void WordBreaks::read() {
  at_ = end_;
  class_ = kNewline;
  if (at_ >= text_.size()) return;
  class_ = class_of(next_character(text_, end_));
  for (std::size_t after = end_; after < text_.size(); end_ = after) {
    if (static_cast<unsigned char>(text_[after]) < 0x80) break;
    if (class_of(next_character(text_, after)) != kIgnored) break;
  }
}

}  // namespace divan::text
