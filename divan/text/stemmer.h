// Stems of words: what their inflected forms have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace divan::text {

/// The algorithms (https://snowballstem.org/algorithms/).
enum class Stemmer : std::uint8_t {
  none,
  arabic,
  armenian,
  basque,
  catalan,
  danish,
  dutch,
  english,  ///< Porter's of 1980 with the changes of Lucene's PorterStemmer, not Snowball's english
  finnish,
  french,
  german,
  greek,
  hindi,
  hungarian,
  indonesian,
  irish,
  italian,
  norwegian,
  portuguese,
  romanian,
  russian,
  spanish,
  swedish,
  turkish
};

/// Replaces a word in lower case, which must be valid UTF-8, by its stem. Thread-safe: each thread that calls
/// it has stemmers, and a cache of a constant size (about 512 KB).
void stem(Stemmer stemmer, std::string& word);

}  // namespace divan::text
