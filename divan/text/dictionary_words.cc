#include "divan/text/dictionary_words.h"

#include <new>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

bool is_without_spaces(WordKind kind) {
  return kind == WordKind::ideograph || kind == WordKind::hiragana || kind == WordKind::katakana ||
         kind == WordKind::south_east_asian;
}

void check(UErrorCode status) {
  if (U_FAILURE(status)) throw std::bad_alloc();
}

}  // namespace

bool DictionaryWords::next(Word& word) {
  while (true) {
    if (next_of_run(word)) {
      word.position = position_++;
      return true;
    }
    if (words_.at() >= text_.size()) return false;
    if (!words_.next_here(word)) continue;
    if (is_without_spaces(word.kind)) {
      read_run(word);
      continue;
    }
    word.position = position_++;
    const auto found = text_.substr(word.begin, word.end - word.begin);
    if (found.size() <= kMaxWordUnits || utf16_units(found) <= kMaxWordUnits) return true;
  }
}

bool DictionaryWords::next_of_run(Word& word) {
  if (run_at_ >= run_end_) {
    if (run_end_ >= rest_end_) return false;
    read_piece();
  }
  const auto next = ubrk_next(breaks_.get());
  word = {run_at_, next == UBRK_DONE ? run_end_ : run_begin_ + static_cast<std::size_t>(next), 0,
          WordKind::word};
  run_at_ = word.end;
  return true;
}

// Words next to each other.
void DictionaryWords::read_run(const Word& first) {
  run_at_ = run_end_ = first.begin;
  rest_end_ = first.end;
  Word word;
  while (rest_end_ - first.begin < kMaxRunBytes && words_.at() == rest_end_ && rest_end_ < text_.size()) {
    const std::size_t at = words_.at();
    if (!words_.next_here(word) || !is_without_spaces(word.kind)) {
      words_.move(at);
      return;
    }
    rest_end_ = word.end;
  }
}

// The first piece of the rest.
void DictionaryWords::read_piece() {
  run_begin_ = run_at_ = run_end_;
  if (rest_end_ - run_begin_ <= kMaxRunBytes) {
    run_end_ = rest_end_;
  } else {
    for (std::size_t next = run_begin_; next - run_begin_ < kMaxRunBytes; next_character(text_, next))
      run_end_ = next;
  }
  divide_run();
}

void DictionaryWords::divide_run() {
  UErrorCode status = U_ZERO_ERROR;
  run_text_.reset(utext_openUTF8(run_text_.release(), text_.data() + run_begin_,
                                 static_cast<std::int64_t>(run_end_ - run_begin_), &status));
  check(status);
  if (!breaks_) breaks_.reset(ubrk_open(UBRK_WORD, "", nullptr, 0, &status));
  check(status);
  ubrk_setUText(breaks_.get(), run_text_.get(), &status);
  check(status);
}

}  // namespace divan::text
