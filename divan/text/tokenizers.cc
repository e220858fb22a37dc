#include "divan/text/tokenizers.h"

#include <unicode/uchar.h>

#include "divan/text/bigrams.h"
#include "divan/text/characters.h"
#include "divan/text/classic_tokenizer.h"
#include "divan/text/dictionary_words.h"
#include "divan/text/email_tokenizer.h"
#include "divan/text/word_breaks.h"

namespace divan::text {
namespace {

class WholeText final : public Tokenizer {
 public:
  explicit WholeText(std::string_view text) : size_(text.size()) {}

  bool next(Word& word) override {
    if (is_done_) return false;
    word = {0, size_, 0, WordKind::word};
    return is_done_ = true;
  }

 private:
  const std::size_t size_;
  bool is_done_ = false;
};

// Runs of characters of which `is_part` is true.
class Runs final : public Tokenizer {
 public:
  Runs(std::string_view text, UBool (*is_part)(UChar32)) : text_(text), is_part_(is_part) {}

  bool next(Word& word) override {
    std::size_t end = at_;
    while (end < text_.size() && !is_part_(next_character(text_, end))) at_ = end;
    if (at_ >= text_.size()) return false;
    word = {at_, at_, position_++, WordKind::word};
    std::size_t units = 0;
    while (word.end < text_.size() && units < kMaxWordUnits) {
      std::size_t next = word.end;
      const UChar32 character = next_character(text_, next);
      if (!is_part_(character)) break;
      units += utf16_units(character);
      word.end = next;
    }
    at_ = word.end;
    return true;
  }

 private:
  const std::string_view text_;
  UBool (*const is_part_)(UChar32);
  std::size_t at_ = 0;
  std::uint32_t position_ = 0;
};

UBool is_not_space(UChar32 character) { return !u_isWhitespace(character); }

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerRules rules, std::string_view text) {
  switch (rules) {
    case TokenizerRules::keyword: return std::make_unique<WholeText>(text);
    case TokenizerRules::whitespace: return std::make_unique<Runs>(text, is_not_space);
    case TokenizerRules::letter: return std::make_unique<Runs>(text, u_isalpha);
    case TokenizerRules::classic: return std::make_unique<ClassicTokenizer>(text);
    case TokenizerRules::email: return std::make_unique<EmailTokenizer>(text);
    case TokenizerRules::bigrams: return std::make_unique<Bigrams>(text);
    case TokenizerRules::dictionary: return std::make_unique<DictionaryWords>(text);
    case TokenizerRules::standard: break;
  }
  return std::make_unique<WordBreaks>(text);
}

}  // namespace divan::text
