// Words of languages that are written without spaces, from ICU's dictionaries.
#pragma once

#include <unicode/ubrk.h>
#include <unicode/utext.h>

#include <memory>

#include "divan/text/word_breaks.h"

namespace divan::text {

/// The words of WordBreaks; in runs of Chinese, Japanese, Thai, Lao, Khmer and Burmese, the words of the
/// dictionary there. Runs are divided into pieces of at most kMaxRunBytes, which may divide a word: ICU's
/// memory depends on the length. See Tokenizer.
class DictionaryWords final : public Tokenizer {
 public:
  static constexpr std::size_t kMaxRunBytes = 3072;

  explicit DictionaryWords(std::string_view text) : text_(text), words_(text) {}

  bool next(Word& word) override;

 private:
  bool next_of_run(Word& word);
  void read_run(const Word& first);
  void read_piece();
  void divide_run();

  struct Closer {
    void operator()(UBreakIterator* breaks) const { ubrk_close(breaks); }
    void operator()(UText* text) const { utext_close(text); }
  };

  const std::string_view text_;
  WordBreaks words_;
  std::unique_ptr<UText, Closer> run_text_;  // before breaks_, which refers to it
  std::unique_ptr<UBreakIterator, Closer> breaks_;
  // The current piece, its next word, its end, and the end of its run; all are equal outside of runs.
  std::size_t run_begin_ = 0, run_at_ = 0, run_end_ = 0, rest_end_ = 0;
  std::uint32_t position_ = 0;
};

}  // namespace divan::text
