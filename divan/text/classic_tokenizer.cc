#include "divan/text/classic_tokenizer.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

bool is_chinese_or_japanese(UChar32 c) {
  return (c >= 0x3040 && c <= 0x312F) || (c >= 0x31F0 && c <= 0x31FF) || (c >= 0x3300 && c <= 0x337F) ||
         (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFF65 && c <= 0xFF9F);
}

bool is_letter(UChar32 c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return c <= 0xFFFF && u_isalpha(c) && !is_chinese_or_japanese(c);
}

bool is_digit(UChar32 c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return c <= 0xFFFF && u_isdigit(c);
}

bool is_thai(UChar32 c) { return c >= 0x0E00 && c <= 0x0E59; }

// Letters and digits that follow each other.
struct Run {
  std::size_t end = 0;          // its start, if it is empty
  std::size_t letters_end = 0;  // of the letters that it begins with
  bool has_digit = false;
  bool has_thai = false;  // a character that is neither letter nor digit: a Thai vowel or sign
  bool only_letters() const { return end == letters_end; }
};

Run read_run(std::string_view text, std::size_t begin) {
  Run run{begin, begin};
  for (std::size_t next = begin; next < text.size(); run.end = next) {
    const UChar32 character = next_character(text, next);
    if (is_letter(character)) {
      if (run.letters_end == run.end) run.letters_end = next;
    } else if (is_digit(character)) {
      run.has_digit = true;
    } else if (is_thai(character)) {
      run.has_thai = true;
    } else {
      break;
    }
  }
  return run;
}

bool has(std::string_view text, std::size_t at, std::string_view any_of) {
  return at < text.size() && any_of.find(text[at]) != std::string_view::npos;
}

// Letters ' letters ...; `begin` if it does not match.
std::size_t match_apostrophe(std::string_view text, std::size_t begin) {
  std::size_t end = begin, at = read_run(text, begin).letters_end;
  while (at > begin && has(text, at, "'")) {
    const std::size_t letters = at + 1;
    at = read_run(text, letters).letters_end;
    if (at == letters) break;
    end = at;
  }
  return end;
}

std::size_t match_company(std::string_view text, std::size_t begin) {
  const auto letters = read_run(text, begin).letters_end;
  if (letters == begin || !has(text, letters, "&@")) return begin;
  const auto end = read_run(text, letters + 1).letters_end;
  return end == letters + 1 ? begin : end;
}

// One letter, and a dot.
std::size_t match_letter_and_dot(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  if (begin >= text.size() || !is_letter(next_character(text, end)) || !has(text, end, ".")) return begin;
  return end + 1;
}

std::size_t match_acronym(std::string_view text, std::size_t begin) {
  std::size_t end = match_letter_and_dot(text, begin);
  if (end == begin) return begin;
  std::size_t second = match_letter_and_dot(text, end);
  if (second == end) return begin;
  for (; second != end; second = match_letter_and_dot(text, second)) end = second;
  return end;
}

// Runs with dots between them. `dot_end` is set to the end with a dot after the last but one run or later.
std::size_t match_host(std::string_view text, std::size_t begin, std::size_t& dot_end) {
  std::size_t end = begin;
  auto run = read_run(text, begin);
  std::size_t runs = 0;
  for (std::size_t from = begin; run.end > from;) {
    if (++runs > 1) end = run.end;
    if (!has(text, run.end, ".")) break;
    from = run.end + 1;
    if (runs > 1) dot_end = from;
    run = read_run(text, from);
  }
  return end;
}

// Runs with punctuation between them, of which the odd or the even ones have digits.
std::size_t match_number(std::string_view text, std::size_t begin) {
  std::size_t end = begin, from = begin;
  bool odd_have_digits = true, even_have_digits = true;
  for (std::size_t runs = 1;; ++runs) {
    const auto run = read_run(text, from);
    if (run.end == from) return end;
    // A part with a digit has no Thai vowels: it may be a part of the run.
    const bool has_digit = run.has_digit && !run.has_thai;
    (runs % 2 == 1 ? odd_have_digits : even_have_digits) &= has_digit;
    if (!odd_have_digits && !even_have_digits) return end;
    if (runs > 1) end = run.end;
    if (!has(text, run.end, "_-/.,")) return end;
    from = run.end + 1;
  }
}

}  // namespace

bool ClassicTokenizer::next(Word& word) {
  while (at_ < text_.size()) {
    std::size_t next = at_;
    const UChar32 character = next_character(text_, next);
    if (is_chinese_or_japanese(character)) {
      word = {at_, next, position_++, WordKind::ideograph};
      at_ = next;
      return true;
    }
    word = match(at_);
    if (word.end == word.begin) {
      at_ = next;
      continue;
    }
    at_ = word.end;
    if (word.kind == WordKind::word && has(text_, word.end - 1, ".")) --word.end;
    word.position = position_++;
    if (word.end - word.begin <= kMaxWordUnits ||
        utf16_units(text_.substr(word.begin, at_ - word.begin)) <= kMaxWordUnits)
      return true;
  }
  return false;
}

// The longest match at `begin`, the first of equally long ones.
Word ClassicTokenizer::match(std::size_t begin) {
  Word longest{begin, read_run(text_, begin).end, 0, WordKind::word};
  if (longest.end == begin) return longest;
  const auto consider = [&](std::size_t end, WordKind kind) {
    if (end > longest.end) longest = {begin, end, 0, kind};
  };
  consider(match_apostrophe(text_, begin), WordKind::apostrophe);
  consider(match_acronym(text_, begin), WordKind::acronym);
  consider(match_company(text_, begin), WordKind::word);
  consider(match_email(begin), WordKind::word);
  std::size_t dot_end = begin;
  consider(match_host(text_, begin, dot_end), WordKind::word);
  consider(match_number(text_, begin), WordKind::word);
  consider(dot_end, WordKind::word);
  return longest;
}

// Runs with . - or _ between them, @, and at least two runs with . or - between them.
std::size_t ClassicTokenizer::match_email(std::size_t begin) {
  if (begin < no_email_before_) return begin;
  std::size_t at = begin;
  while (true) {
    const auto run = read_run(text_, at);
    const bool is_empty = run.end == at;
    at = run.end;
    if (is_empty || !has(text_, at, ".-_")) break;
    ++at;
  }
  // A later start in this chain leads to the same place.
  no_email_before_ = std::max(at, begin + 1);
  if (!has(text_, at, "@") || has(text_, at - 1, ".-_")) return begin;
  ++at;
  std::size_t end = begin;
  for (std::size_t runs = 1;; ++runs) {
    const auto run = read_run(text_, at);
    if (run.end == at) return end;
    if (runs > 1) end = run.end;
    if (!has(text_, run.end, ".-")) return end;
    at = run.end + 1;
  }
}

}  // namespace divan::text
