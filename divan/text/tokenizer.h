// Words of a text, and what finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace divan::text {

/// The kinds of words. Those after `word` need a filter, or another way to be found.
enum class WordKind : std::uint8_t {
  word,
  ideograph,         ///< one Han character
  hiragana,          ///< one character
  katakana,          ///< a run
  south_east_asian,  ///< a run of a script without spaces: Thai, Lao, Khmer, Burmese
  apostrophe,        ///< of the classic tokenizer: letters with an apostrophe between them
  acronym,           ///< of the classic tokenizer: letters with a dot after each
};

/// A part of a text. A value type.
struct Word {
  std::size_t begin = 0, end = 0;  ///< offsets in bytes
  std::uint32_t position = 0;      ///< its number; numbers are missing where words were too long
  WordKind kind = WordKind::word;
};

/// Words longer than this number of UTF-16 code units are dropped, or, by the tokenizers of letters and of
/// white space, divided. This is Lucene's default.
inline constexpr std::size_t kMaxWordUnits = 255;

/// Finds the words of one text, from its start to its end, in linear time. Malformed UTF-8 is treated as
/// U+FFFD. Not thread-safe. The text must outlive it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Sets `word` to the next one; returns false if there is none.
  virtual bool next(Word& word) = 0;
};

}  // namespace divan::text
