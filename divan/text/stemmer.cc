#include "divan/text/stemmer.h"

#include <libstemmer.h>

#include <array>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

// In the order of Stemmer.
constexpr const char* kAlgorithms[] = {
    "",        "arabic",    "armenian",   "basque",   "catalan", "danish",    "dutch",      "porter",
    "finnish", "french",    "german",     "greek",    "hindi",   "hungarian", "indonesian", "irish",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish",   "swedish",    "turkish"};
static_assert(std::size(kAlgorithms) == static_cast<std::size_t>(Stemmer::turkish) + 1);

struct StemmerDeleter {
  void operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }
};

bool is_vowel(std::string_view word, std::size_t at) {
  if (word[at] == 'y') return at > 0 && !is_vowel(word, at - 1);
  return std::string_view("aeiou").find(word[at]) != std::string_view::npos;
}

// Porter's m > 0: there is a consonant after a vowel.
bool has_measure(std::string_view word) {
  bool had_vowel = false;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const bool vowel = is_vowel(word, at);
    if (had_vowel && !vowel) return true;
    had_vowel |= vowel;
  }
  return false;
}

// A word and its stem, both short.
struct CachedStem {
  static constexpr std::size_t kMaxBytes = 30;
  Stemmer stemmer = Stemmer::none;
  std::uint8_t word_size = 0, stem_size = 0;
  std::array<char, kMaxBytes> word{}, stem{};
};

// Stemmers of a thread. Words are distributed like Zipf's law: the cache has one entry for each hash, of the
// last word.
class ThreadStemmers {
 public:
  ThreadStemmers() : cache_(kEntries) {}

  void stem(Stemmer stemmer, std::string& word) {
    if (word.size() > CachedStem::kMaxBytes) return compute(stemmer, word);
    auto& entry = cache_[std::hash<std::string_view>()(word) % kEntries];
    if (entry.stemmer == stemmer && std::string_view(entry.word.data(), entry.word_size) == word) {
      word.assign(entry.stem.data(), entry.stem_size);
      return;
    }
    const std::string original = word;
    compute(stemmer, word);
    if (word.size() > CachedStem::kMaxBytes) return;
    entry.stemmer = stemmer;
    entry.word_size = static_cast<std::uint8_t>(original.copy(entry.word.data(), original.size()));
    entry.stem_size = static_cast<std::uint8_t>(word.copy(entry.stem.data(), word.size()));
  }

 private:
  static constexpr std::size_t kEntries = 8192;

  void compute(Stemmer stemmer, std::string& word) {
    if (stemmer != Stemmer::english) return snowball(stemmer, word);
    if (word.size() <= 6 && utf16_units(word) <= 2) return;
    const bool had_final_e =
        word.back() == 'e';  // removed by step 5: what is left then has not passed step 2
    snowball(stemmer, word);
    if (had_final_e) return;
    // Lucene's rules of step 2 are bli -> ble and logi -> log, where Porter had abli -> able.
    if (word.ends_with("bli") && has_measure(std::string_view(word).substr(0, word.size() - 3))) {
      word.back() = 'e';
      snowball(stemmer, word);
    } else if (word.ends_with("logi") && has_measure(std::string_view(word).substr(0, word.size() - 4))) {
      word.pop_back();
    }
  }

  void snowball(Stemmer stemmer, std::string& word) {
    const auto index = static_cast<std::size_t>(stemmer);
    auto& algorithm = stemmers_[index];
    if (!algorithm) algorithm.reset(sb_stemmer_new(kAlgorithms[index], nullptr));
    if (!algorithm) throw std::bad_alloc();
    const auto* const stem = sb_stemmer_stem(algorithm.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                                             static_cast<int>(word.size()));
    if (stem == nullptr) throw std::bad_alloc();
    word.assign(reinterpret_cast<const char*>(stem),
                static_cast<std::size_t>(sb_stemmer_length(algorithm.get())));
  }

  std::array<std::unique_ptr<sb_stemmer, StemmerDeleter>, std::size(kAlgorithms)> stemmers_;
  std::vector<CachedStem> cache_;
};

}  // namespace

void stem(Stemmer stemmer, std::string& word) {
  if (stemmer == Stemmer::none || word.empty()) return;
  thread_local ThreadStemmers stemmers;
  stemmers.stem(stemmer, word);
}

}  // namespace divan::text
