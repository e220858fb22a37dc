// Forms of words that are equivalent in a search: without case, accents or width.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace divan::text {

/// How the characters of a word become those of a term.
enum class CaseFolding : std::uint8_t {
  none,     ///< as they are
  lower,    ///< Unicode's simple mappings to lower case, which keep the number of characters
  turkish,  ///< lower, with I to a dotless i, and a dotted I to i
  greek,    ///< lower, without accents, and with one form of sigma
  irish,    ///< lower, with a hyphen after an n or t that a word was prefixed with: nAthair to n-athair
  persian   ///< lower, with the Arabic forms of letters that Persian and Arabic write differently
};

/// Sets `term` to the folded form of `word`. Malformed UTF-8 becomes U+FFFD.
void fold_case(CaseFolding folding, std::string_view word, std::string& term);

/// Replaces letters of Latin script by those of ASCII: é by e, ß by ss. Other characters are kept. A letter
/// is replaced if its compatibility decomposition (NFKD) without marks is ASCII letters, or if it is in a
/// table of those that have no such decomposition: ø, æ, ł. Lucene's ASCIIFoldingFilter keeps some of these
/// letters (as ª), and replaces rare ones above U+02AF that are kept here.
void fold_to_ascii(std::string& term);

/// Replaces characters of full and half width, which East Asian texts have, by those of normal width.
void fold_width(std::string& term);

/// Removes the end of a word that is 's, with one of three apostrophes.
std::string_view without_possessive(std::string_view word);

/// Removes the article at the start of a word, with its apostrophe, if `articles` (a space follows each) has
/// it in lower case: l'avion to avion.
std::string_view without_article(std::string_view word, std::string_view articles);

}  // namespace divan::text
