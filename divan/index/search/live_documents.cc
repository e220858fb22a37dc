#include "divan/index/search/live_documents.h"

#include <algorithm>
#include <bit>

#include "divan/base/bytes.h"

namespace divan::index::search {
namespace {

// How a row's value begins: what follows is a word for 64 numbers each, or the differences between numbers.
constexpr char kWords = 0;
constexpr char kDifferences = 1;
// Sets with fewer numbers are written as differences.
constexpr std::size_t kFew = 200;

[[noreturn]] void throw_damaged() { throw internal_error("The live documents of an index are damaged."); }

}  // namespace

std::vector<std::uint64_t> NumberSet::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    for (auto word = words_[i]; word != 0; word &= word - 1)
      numbers.push_back(64 * i + static_cast<std::uint64_t>(std::countr_zero(word)));
  }
  return numbers;
}

bool NumberSet::empty() const {
  return std::ranges::all_of(words_, [](auto word) { return word == 0; });
}

std::string NumberSet::encode() const {
  const auto numbers = this->numbers();
  std::string value;
  if (numbers.size() >= kFew) {
    value += kWords;
    for (const auto word : words_) append_u64(value, word);
    return value;
  }
  value += kDifferences;
  std::uint64_t last = 0;
  for (const auto number : numbers) {
    append_varint(value, number - last);
    last = number;
  }
  return value;
}

NumberSet NumberSet::decode(std::string_view value) {
  NumberSet set;
  if (value.empty() || (value[0] != kWords && value[0] != kDifferences)) throw_damaged();
  const bool are_words = value[0] == kWords;
  value.remove_prefix(1);
  if (are_words) {
    if (value.size() != 8 * set.words_.size()) throw_damaged();
    for (std::size_t i = 0; i < set.words_.size(); ++i) set.words_[i] = read_u64(value.substr(8 * i));
    return set;
  }
  std::uint64_t number = 0;
  while (!value.empty()) {
    const auto difference = take_varint(value);
    if (!difference || *difference >= kLiveDocumentsOfARow) throw_damaged();
    number += *difference;
    if (number >= kLiveDocumentsOfARow) throw_damaged();
    set.insert(number);
  }
  return set;
}

void LiveDocuments::read(std::span<const DocumentNumber> numbers) {
  std::vector<std::uint64_t> missing;
  for (const auto number : numbers) {
    const auto row = number / kLiveDocumentsOfARow;
    if (!rows_.contains(row) && (missing.empty() || missing.back() != row)) missing.push_back(row);
  }
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (missing.empty()) return;
  std::vector<std::string> row_keys;
  row_keys.reserve(missing.size());
  for (const auto row : missing) row_keys.push_back(keys_.live(row));
  const auto values = tx_.get_many(row_keys, kv::Isolation::snapshot);
  for (std::size_t i = 0; i < missing.size(); ++i)
    rows_[missing[i]] = values[i] ? NumberSet::decode(*values[i]) : NumberSet();
}

bool LiveDocuments::contains(DocumentNumber number) {
  // Numbers that are asked for one after the other mostly have the same row.
  if (last_ == nullptr || last_row_ != number / kLiveDocumentsOfARow) {
    last_ = &row(number);
    last_row_ = number / kLiveDocumentsOfARow;
  }
  return last_->contains(number % kLiveDocumentsOfARow);
}

NumberSet& LiveDocuments::row(DocumentNumber number) {
  read({&number, 1});
  return rows_[number / kLiveDocumentsOfARow];
}

std::vector<DocumentNumber> LiveDocuments::all() {
  std::vector<DocumentNumber> all;
  const std::string prefix = keys_.part(Part::live);
  tx_.scan(kv::below(prefix), {.isolation = kv::Isolation::snapshot},
           [&](std::string_view key, std::string_view value) {
             const auto row = kv::tuple::Reader(key.substr(prefix.size())).take_uint();
             if (!row) throw_damaged();
             for (const auto number : NumberSet::decode(value).numbers())
               all.push_back(*row * kLiveDocumentsOfARow + number);
             return true;
           });
  return all;
}

}  // namespace divan::index::search
