#include "divan/text/folding.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <algorithm>
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
    case 0x200C:                 // zero width non-joiner
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
      append_character(term, u_tolower(character));
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

struct AsciiForm {
  UChar32 letter;
  std::string_view ascii;
};

// Letters of Latin scripts up to U+02AF that have no decomposition into ASCII, in their order. The forms are
// those of Lucene's ASCIIFoldingFilter.
constexpr AsciiForm kAsciiForms[] = {
    {0xC6, "AE"},  {0xD0, "D"},   {0xD8, "O"},   {0xDE, "TH"},  {0xDF, "ss"},   {0xE6, "ae"},  {0xF0, "d"},
    {0xF8, "o"},   {0xFE, "th"},  {0x110, "D"},  {0x111, "d"},  {0x126, "H"},   {0x127, "h"},  {0x131, "i"},
    {0x138, "q"},  {0x13F, "L"},  {0x140, "l"},  {0x141, "L"},  {0x142, "l"},   {0x149, "n"},  {0x14A, "N"},
    {0x14B, "n"},  {0x152, "OE"}, {0x153, "oe"}, {0x166, "T"},  {0x167, "t"},   {0x180, "b"},  {0x181, "B"},
    {0x182, "B"},  {0x183, "b"},  {0x186, "O"},  {0x187, "C"},  {0x188, "c"},   {0x189, "D"},  {0x18A, "D"},
    {0x18B, "D"},  {0x18C, "d"},  {0x18E, "E"},  {0x18F, "A"},  {0x190, "E"},   {0x191, "F"},  {0x192, "f"},
    {0x193, "G"},  {0x195, "hv"}, {0x196, "I"},  {0x197, "I"},  {0x198, "K"},   {0x199, "k"},  {0x19A, "l"},
    {0x19C, "M"},  {0x19D, "N"},  {0x19E, "n"},  {0x19F, "O"},  {0x1A4, "P"},   {0x1A5, "p"},  {0x1AB, "t"},
    {0x1AC, "T"},  {0x1AD, "t"},  {0x1AE, "T"},  {0x1B2, "V"},  {0x1B3, "Y"},   {0x1B4, "y"},  {0x1B5, "Z"},
    {0x1B6, "z"},  {0x1BF, "w"},  {0x1DD, "e"},  {0x1E4, "G"},  {0x1E5, "G"},   {0x1E7, "G"},  {0x1F6, "HV"},
    {0x1F7, "W"},  {0x21C, "Z"},  {0x21D, "z"},  {0x220, "N"},  {0x221, "d"},   {0x222, "OU"}, {0x223, "ou"},
    {0x224, "Z"},  {0x225, "z"},  {0x234, "l"},  {0x235, "n"},  {0x236, "t"},   {0x237, "j"},  {0x238, "db"},
    {0x239, "qp"}, {0x23A, "A"},  {0x23B, "C"},  {0x23C, "c"},  {0x23D, "L"},   {0x23E, "T"},  {0x23F, "s"},
    {0x240, "z"},  {0x243, "B"},  {0x244, "U"},  {0x245, "V"},  {0x246, "E"},   {0x247, "e"},  {0x248, "J"},
    {0x249, "j"},  {0x24A, "Q"},  {0x24B, "q"},  {0x24C, "R"},  {0x24D, "r"},   {0x24E, "Y"},  {0x24F, "y"},
    {0x250, "a"},  {0x253, "b"},  {0x254, "o"},  {0x255, "c"},  {0x256, "d"},   {0x257, "d"},  {0x258, "e"},
    {0x259, "a"},  {0x25A, "a"},  {0x25B, "e"},  {0x25C, "e"},  {0x25D, "e"},   {0x25E, "e"},  {0x25F, "j"},
    {0x260, "g"},  {0x261, "g"},  {0x262, "G"},  {0x265, "h"},  {0x266, "h"},   {0x268, "i"},  {0x26A, "I"},
    {0x26B, "l"},  {0x26C, "l"},  {0x26D, "l"},  {0x26F, "m"},  {0x270, "m"},   {0x271, "m"},  {0x272, "n"},
    {0x273, "n"},  {0x274, "N"},  {0x275, "o"},  {0x276, "OE"}, {0x27C, "r"},   {0x27D, "r"},  {0x27E, "r"},
    {0x27F, "r"},  {0x280, "R"},  {0x281, "R"},  {0x282, "s"},  {0x284, "j"},   {0x287, "t"},  {0x288, "t"},
    {0x289, "u"},  {0x28B, "v"},  {0x28C, "v"},  {0x28D, "w"},  {0x28E, "y"},   {0x28F, "Y"},  {0x290, "z"},
    {0x291, "z"},  {0x297, "C"},  {0x299, "B"},  {0x29A, "e"},  {0x29B, "G"},   {0x29C, "H"},  {0x29D, "j"},
    {0x29E, "k"},  {0x29F, "L"},  {0x2A0, "q"},  {0x2A3, "dz"}, {0x2A5, "dz"},  {0x2A6, "ts"}, {0x2A8, "tc"},
    {0x2AA, "ls"}, {0x2AB, "lz"}, {0x2AE, "h"},  {0x2AF, "h"},  {0x1D01, "AE"}, {0x1E9E, "SS"}};

std::string_view ascii_of(UChar32 character) {
  const auto* const found = std::ranges::lower_bound(kAsciiForms, character, {}, &AsciiForm::letter);
  return found != std::end(kAsciiForms) && found->letter == character ? found->ascii : std::string_view();
}

bool is_ascii_letter(char16_t unit) { return (unit >= 'a' && unit <= 'z') || (unit >= 'A' && unit <= 'Z'); }

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
      if (is_ascii_letter(unit)) {
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
