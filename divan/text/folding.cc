#include "divan/text/folding.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <array>
#include <new>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

// U+2019 and U+FF07.
constexpr std::string_view kApostrophes[] = {"'", "’", "＇"};

UChar32 greek(UChar32 character) {
  switch (character) {
    case U'ς':
    case U'ϲ': return U'σ';
    case U'ά': return U'α';
    case U'έ': return U'ε';
    case U'ή': return U'η';
    case U'ί':
    case U'ϊ':
    case U'ΐ': return U'ι';
    case U'ό': return U'ο';
    case U'ύ':
    case U'ϋ':
    case U'ΰ': return U'υ';
    case U'ώ': return U'ω';
    default: return character;
  }
}

// 0 if the character is left out.
UChar32 persian(UChar32 character) {
  switch (character) {
    case 0x06CC:                 // Farsi yeh
    case 0x06D2:                 // yeh barree
    case 0x0649: return 0x064A;  // alef maksura
    case 0x06A9: return 0x0643;  // keheh
    case 0x06C0:                 // heh with yeh above
    case 0x06C1:                 // heh goal
    case 0x0629: return 0x0647;  // teh marbuta
    case 0x0622:
    case 0x0623:
    case 0x0625: return 0x0627;  // alef with marks
    case 0x0640:                 // tatweel
    case 0x0654: return 0;       // hamza above
    default: return character >= 0x064B && character <= 0x0652 ? 0 : character;
  }
}

void fold_turkish(std::string_view word, std::string& term) {
  constexpr UChar32 kDotAbove = 0x0307;
  for (std::size_t at = 0; at < word.size();) {
    const UChar32 character = next_character(word, at);
    if (character != 'I') {
      append_character(term, character == 0x0130 ? 'i' : u_tolower(character));
      continue;
    }
    std::size_t behind = at;
    const bool has_dot = at < word.size() && next_character(word, behind) == kDotAbove;
    append_character(term, has_dot ? 'i' : 0x0131);
    if (has_dot) at = behind;
  }
}

bool fold_ascii(std::string_view word, std::string& term) {
  for (const char byte : word) {
    if (static_cast<unsigned char>(byte) >= 0x80) return false;
    term += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
  }
  return true;
}

bool is_irish_prefix(std::string_view word) {
  if (word.size() < 2 || (word[0] != 'n' && word[0] != 't')) return false;
  std::size_t at = 1;
  switch (next_character(word, at)) {
    case 'A':
    case 'E':
    case 'I':
    case 'O':
    case 'U':
    case 0xC1:
    case 0xC9:
    case 0xCD:
    case 0xD3:
    case 0xDA: return true;  // with an acute
    default: return false;
  }
}

// Those of ASCIIFoldingFilter that have no decomposition.
std::string_view ascii_of(UChar32 character) {
  switch (character) {
    case 0xC6:
    case 0x1D01: return "AE";
    case 0xE6: return "ae";
    case 0xD0:
    case 0x110: return "D";
    case 0xF0:
    case 0x111: return "d";
    case 0xD8: return "O";
    case 0xF8: return "o";
    case 0xDE: return "TH";
    case 0xFE: return "th";
    case 0xDF: return "ss";
    case 0x1E9E: return "SS";
    case 0x126: return "H";
    case 0x127: return "h";
    case 0x131: return "i";
    case 0x138: return "q";
    case 0x141: return "L";
    case 0x142: return "l";
    case 0x14A: return "N";
    case 0x14B: return "n";
    case 0x152: return "OE";
    case 0x153: return "oe";
    case 0x166: return "T";
    case 0x167: return "t";
    default: return {};
  }
}

const UNormalizer2* normalizer(const UNormalizer2* (*get)(UErrorCode*)) {
  UErrorCode status = U_ZERO_ERROR;
  const auto* const result = get(&status);
  if (U_FAILURE(status)) throw std::bad_alloc();
  return result;
}

// The compatibility decomposition of a character; empty if it has none.
std::u16string_view decomposition(UChar32 character, std::array<char16_t, 32>& buffer) {
  static const UNormalizer2* const kNfkd = normalizer(unorm2_getNFKDInstance);
  UErrorCode status = U_ZERO_ERROR;
  const auto size =
      unorm2_getDecomposition(kNfkd, character, buffer.data(), static_cast<int>(buffer.size()), &status);
  if (size < 0 || U_FAILURE(status)) return {};
  return {buffer.data(), static_cast<std::size_t>(size)};
}

// Appends the ASCII form; returns false if there is none.
bool append_ascii(UChar32 character, std::string& out) {
  std::string folded(ascii_of(character));
  if (folded.empty()) {
    std::array<char16_t, 32> buffer{};
    for (const char16_t unit : decomposition(character, buffer)) {
      if (unit < 0x80) {
        folded += static_cast<char>(unit);
      } else if (u_charType(unit) != U_NON_SPACING_MARK) {
        const auto letter = ascii_of(unit);
        if (letter.empty()) return false;
        folded += letter;
      }
    }
  }
  out += folded;
  return !folded.empty();
}

}  // namespace

void fold_case(CaseFolding folding, std::string_view word, std::string& term) {
  term.clear();
  if (folding == CaseFolding::turkish) return fold_turkish(word, term);
  if (folding == CaseFolding::irish && is_irish_prefix(word)) {
    term = {word[0], '-'};
    word.remove_prefix(1);
  } else if (folding != CaseFolding::none && fold_ascii(word, term)) {
    return;
  } else {
    term.clear();
  }
  for (std::size_t at = 0; at < word.size();) {
    UChar32 character = next_character(word, at);
    if (folding != CaseFolding::none) character = u_tolower(character);
    if (folding == CaseFolding::greek) character = greek(character);
    if (folding == CaseFolding::persian) character = persian(character);
    if (character != 0 || folding != CaseFolding::persian) append_character(term, character);
  }
}

void fold_to_ascii(std::string& term) {
  if (is_ascii(term)) return;
  std::string folded;
  for (std::size_t at = 0; at < term.size();) {
    const std::size_t begin = at;
    const UChar32 character = next_character(term, at);
    if (character < 0x80 || !append_ascii(character, folded)) folded.append(term, begin, at - begin);
  }
  term = std::move(folded);
}

void fold_width(std::string& term) {
  static const UNormalizer2* const kNfkc = normalizer(unorm2_getNFKCInstance);
  // Halfwidth and Fullwidth Forms, U+FF00 to U+FFEF, begin with the byte EF.
  if (term.find('\xEF') == std::string::npos) return;
  std::u16string before, after;
  for (std::size_t at = 0; at < term.size();) {
    const UChar32 character = next_character(term, at);
    if (character > 0xFFFF) before += static_cast<char16_t>(U16_LEAD(character));
    before += static_cast<char16_t>(character > 0xFFFF ? U16_TRAIL(character) : character);
  }
  after.resize(before.size() * 4 + 64);
  UErrorCode status = U_ZERO_ERROR;
  const auto size = unorm2_normalize(kNfkc, before.data(), static_cast<int>(before.size()), after.data(),
                                     static_cast<int>(after.size()), &status);
  if (U_FAILURE(status)) return;
  after.resize(static_cast<std::size_t>(size));
  term.clear();
  for (std::size_t at = 0; at < after.size();) {
    const char16_t unit = after[at++];
    UChar32 character = unit;
    if (U16_IS_LEAD(unit) && at < after.size()) character = U16_GET_SUPPLEMENTARY(unit, after[at++]);
    append_character(term, character);
  }
}

std::string_view without_possessive(std::string_view word) {
  if (!word.ends_with('s') && !word.ends_with('S')) return word;
  const auto rest = word.substr(0, word.size() - 1);
  for (const auto apostrophe : kApostrophes)
    if (rest.ends_with(apostrophe)) return rest.substr(0, rest.size() - apostrophe.size());
  return word;
}

std::string_view without_article(std::string_view word, std::string_view articles) {
  std::size_t end = std::string_view::npos, behind = 0;
  for (const std::string_view apostrophe : {"'", "’"}) {
    const auto at = word.find(apostrophe);
    if (at >= end) continue;
    end = at;
    behind = at + apostrophe.size();
  }
  constexpr std::size_t kLongestArticle = 8;
  if (end == std::string_view::npos || end > kLongestArticle) return word;
  std::string article;
  fold_case(CaseFolding::lower, word.substr(0, end), article);
  article += ' ';
  const bool is_article =
      articles.starts_with(article) || articles.find(' ' + article) != std::string_view::npos;
  return is_article ? word.substr(behind) : word;
}

}  // namespace divan::text
