#include "divan/index/search/search_batch.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/kv/chunks.h"

namespace divan::index::search {
namespace {

// A transaction takes no further rows when it has this many bytes.
constexpr std::size_t kFullTransactionBytes = 2'000'000;
// Approximate bytes of a field in a transaction, beside its name: the keys of its counters.
constexpr std::size_t kFieldOverhead = 50;
constexpr std::size_t kDocumentOverhead = 500;
// Approximate bytes of a row in a transaction, beside its key's suffix and its value.
constexpr std::size_t kRowOverhead = 64;
// The difference between the positions of a field's values: a phrase does not go from one to the next.
constexpr std::uint32_t kValueGap = 100;
constexpr std::size_t kShownBytes = 60;
// Of the product of the boosts of a field's values, so that scores are finite.
constexpr float kMaxFieldBoost = 1e6F;

}  // namespace

void SearchBatch::add_document(std::string id) { documents_.emplace_back().stored.id = std::move(id); }

void SearchBatch::add_failure(std::size_t index, std::string_view reason) {
  Document& document = documents_[index];
  if (document.left_out) return;
  ++failures_;
  document.left_out = LeftOut{0, std::string(utf8_prefix(reason, LeftOut::kMaxReasonBytes))};
}

// Null if the document has too many fields, or the name is too long.
SearchBatch::FieldTerms* SearchBatch::find_field(std::size_t index, std::string_view name) {
  const auto found = open_.fields.find(name);
  if (found != open_.fields.end()) return &found->second;
  if (name.size() > kMaxFieldBytes) {
    add_failure(index, fmt::format("The name of field `{}...` has more than {} bytes.",
                                   utf8_prefix(name, kShownBytes), kMaxFieldBytes));
    return nullptr;
  }
  if (open_.name_bytes + name.size() + kFieldOverhead > kMaxFieldsBytes) {
    add_failure(index, fmt::format("It has too many fields; `{}` and others are left out.",
                                   utf8_prefix(name, kShownBytes)));
    return nullptr;
  }
  open_.name_bytes += name.size() + kFieldOverhead;
  const auto added = open_.fields.try_emplace(std::string(name)).first;
  open_.names.push_back(&added->first);
  return &added->second;
}

void SearchBatch::add_field(std::size_t index, const Field& field) {
  DIVAN_CHECK(index < documents_.size(), "a field of document {} of {}", index, documents_.size());
  if (auto* const terms = find_field(index, field.name)) add_value(index, field, *terms);
}

void SearchBatch::add_value(std::size_t index, const Field& field, FieldTerms& terms) {
  if (field.is_stored) terms.stored.push_back(field.json);
  if (const auto text = json::string_value(field.json)) {
    add_terms(index, field, *text, terms);
  } else if (field.json == "true" || field.json == "false") {
    // Analyzed, so that a query finds it, too, if the analyzer makes another term of it.
    add_terms(index, field, field.json, terms);
  } else {
    double number = 0;
    const char* const end = field.json.data() + field.json.size();
    if (std::from_chars(field.json.data(), end, number).ptr == end && std::isfinite(number))
      terms.numbers.push_back(number);
  }
  if (terms.numbers.size() > kMaxNumbers) {
    add_failure(index, fmt::format("Field `{}` has more than {} numbers; only the first ones can be found.",
                                   utf8_prefix(field.name, kShownBytes), kMaxNumbers));
    terms.numbers.resize(kMaxNumbers);
  }
  if (terms.strings.size() > kMaxValues || terms.facets.size() > kMaxValues) {
    add_failure(index, fmt::format("Field `{}` has more than {} strings; only the first ones can be used to "
                                   "sort and count.",
                                   utf8_prefix(field.name, kShownBytes), kMaxValues));
    terms.strings.resize(std::min(terms.strings.size(), kMaxValues));
    terms.facets.resize(std::min(terms.facets.size(), kMaxValues));
  }
}

void SearchBatch::end_fields(std::size_t index) {
  Document& document = documents_[index];
  json::Writer stored(document.stored.fields);
  stored.begin_object();
  for (const auto* name : open_.names) {
    const FieldTerms& terms = open_.fields.find(*name)->second;
    if (terms.stored.empty()) continue;
    stored.key(*name);
    if (terms.stored.size() > 1) stored.begin_array();
    for (const auto& value : terms.stored) stored.raw(value);
    if (terms.stored.size() > 1) stored.end_array();
  }
  stored.end_object();
  document.has_fields = !open_.names.empty();
  bytes_ += document.stored.fields.size() + document.stored.id.size();
  for (const auto& [name, terms] : open_.fields) {
    if (terms.is_indexed) document.stored.lengths.emplace_back(name, terms.length);
    for (const auto& [term, positions] : terms.positions)
      add_entry(index, row_suffix(Column::terms, name, term),
                encode_occurrences(positions, terms.length, terms.boost));
    if (!terms.numbers.empty())
      add_entry(index, row_suffix(Column::numbers, name, {}), encode_numbers(terms.numbers));
    if (!terms.strings.empty())
      add_entry(index, row_suffix(Column::strings, name, {}), encode_strings(terms.strings));
    if (!terms.facets.empty())
      add_entry(index, row_suffix(Column::facets, name, {}), encode_strings(terms.facets));
  }
  open_ = {};
}

void SearchBatch::add_terms(std::size_t document, const Field& field, std::string_view text,
                            FieldTerms& terms) {
  if (field.has_values) terms.strings.emplace_back(utf8_prefix(text, kMaxStringBytes));
  if (field.is_facet && !text.empty()) terms.facets.emplace_back(utf8_prefix(text, kMaxStringBytes));
  if (!field.is_indexed) return;
  terms.is_indexed = true;
  terms.boost = std::min(terms.boost * field.boost, kMaxFieldBoost);
  const std::uint32_t first = terms.next_position;
  const auto add = [&](const std::string& term, std::uint32_t position) {
    terms.next_position = std::max(terms.next_position, first + position + 1 + kValueGap);
    if (term.size() > kMaxTermBytes) {
      add_failure(document,
                  fmt::format("A term of field `{}` has more than {} bytes, and cannot be found: `{}...`.",
                              field.name, kMaxTermBytes, utf8_prefix(term, kShownBytes)));
      return;
    }
    auto& positions = terms.positions[term];
    if (positions.size() == kMaxPositions) {
      add_failure(document, fmt::format("The term `{}` occurs more than {} times in field `{}`.",
                                        utf8_prefix(term, kShownBytes), kMaxPositions, field.name));
      return;
    }
    positions.push_back(first + position);
    ++terms.length;
  };
  if (field.is_analyzed) {
    analyzer_->analyzer_for(field.name).analyze(text, [&](const text::Token& token) {
      add(token.term, token.position);
    });
  } else {
    add(std::string(text), 0);
  }
}

void SearchBatch::add_entry(std::size_t document, std::string suffix, std::string_view payload) {
  const std::size_t suffix_bytes = suffix.size();
  auto& writers = rows_[std::move(suffix)];
  if (writers.empty()) bytes_ += suffix_bytes + kRowOverhead;
  if (writers.empty() || writers.back().is_full()) writers.emplace_back();
  writers.back().add(document, payload);
  bytes_ += payload.size() + 1;
  ++entries_;
}

std::size_t SearchBatch::prepare(kv::Database& store, const IndexKeys& index_keys, std::size_t first,
                                 const IndexedSoFar& so_far) {
  const SearchKeys keys(index_keys);
  if (!has_begun_) {
    DIVAN_CHECK(first == 0, "a batch is written from document {} on", first);
    begin(store, keys, index_keys, so_far.all_new);
  } else {
    removed_.reset();
  }
  rows_begin_ = rows_end_;
  documents_begin_ = documents_end_ = first;
  live_.clear();
  lengths_.clear();
  std::size_t bytes = 0;
  for (; rows_end_ < writes_.size() && bytes < kFullTransactionBytes; ++rows_end_)
    bytes += writes_[rows_end_].first.size() + writes_[rows_end_].second.size();
  if (rows_end_ == writes_.size() && bytes < kFullTransactionBytes) {
    const auto tx = store.begin();
    plan_documents(*tx, keys, first, bytes);
  }
  const bool is_last = documents_end_ == documents_.size();
  state_.unfinished = is_last ? 0 : first_number_ + documents_end_;
  return documents_end_;
}

void SearchBatch::begin(kv::Database& store, const SearchKeys& keys, const IndexKeys& index_keys,
                        bool all_new) {
  has_begun_ = true;
  const auto tx = store.begin();
  state_ = read_state(*tx, keys);
  if (state_.unfinished != 0) removed_ = {state_.unfinished, state_.next_number};
  first_number_ = state_.next_number;
  // The numbers are taken, even if the batch is never finished.
  state_.next_number += documents_.size();
  if (!all_new) read_before(*tx, keys, index_keys);
  plan_rows(keys);
  if (writes_.empty()) return;
  if (state_.segments.empty()) state_.segments.push_back(0);
  ++state_.segments[0];
}

// Reads what the index has of these documents.
void SearchBatch::read_before(kv::Transaction& tx, const SearchKeys& keys, const IndexKeys& index_keys) {
  std::vector<std::string> number_keys, record_keys;
  for (const auto& document : documents_) {
    number_keys.push_back(keys.number(document.stored.id));
    record_keys.push_back(left_out_key(index_keys, document.stored.id));
  }
  const auto numbers = tx.get_many(number_keys, kv::Isolation::snapshot);
  std::vector<Document*> replaced;
  std::vector<DocumentNumber> replaced_numbers;
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    if (!numbers[i]) continue;
    documents_[i].number_before = decode_number(*numbers[i]);
    replaced_numbers.push_back(documents_[i].number_before);
    replaced.push_back(&documents_[i]);
  }
  auto stored = read_documents(tx, keys, replaced_numbers);
  for (std::size_t i = 0; i < replaced.size(); ++i)
    replaced[i]->lengths_before = std::move(stored[i].lengths);
  if (!lacks_rows(tx, index_keys)) return;
  const auto records = tx.get_many(record_keys, kv::Isolation::snapshot);
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    if (records[i]) documents_[i].left_out_before = decode_left_out(*records[i]);
  }
}

// The rows that are written before the documents are visible. The number of a document is the first one and
// its index in the batch.
void SearchBatch::plan_rows(const SearchKeys& keys) {
  const std::string level = keys.level(0);
  for (auto& [suffix, writers] : rows_) {
    for (auto& writer : writers) {
      std::string key = level + suffix;
      kv::tuple::Packer(key).integer(first_number_ + writer.first());
      writes_.emplace_back(std::move(key), writer.value());
    }
  }
  rows_.clear();
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    Document& document = documents_[i];
    if (!document.has_fields) continue;
    kv::for_each_chunk(document.stored.encode(), [&](std::uint32_t chunk, std::string_view piece) {
      writes_.emplace_back(keys.document(first_number_ + i, chunk), piece);
    });
    document.stored.fields.clear();
  }
  std::ranges::sort(writes_);
}

// What makes documents visible instead of their earlier versions: from `first` on, as many as a transaction
// takes that has `bytes`.
void SearchBatch::plan_documents(kv::Transaction& tx, const SearchKeys& keys, std::size_t first,
                                 std::size_t bytes) {
  LiveDocuments live(tx, keys);
  std::vector<DocumentNumber> changed;
  for (std::size_t i = first; i < documents_.size(); ++i) {
    if (documents_[i].number_before != 0) changed.push_back(documents_[i].number_before);
    changed.push_back(first_number_ + i);
  }
  live.read(changed);
  const auto count = [&](const auto& lengths, std::int64_t sign) {
    for (const auto& [field, length] : lengths) {
      lengths_[field].first += sign;
      lengths_[field].second += sign * static_cast<std::int64_t>(length);
      bytes += 2 * (field.size() + kFieldOverhead);
    }
  };
  for (; documents_end_ < documents_.size() && (documents_end_ == first || bytes < kFullTransactionBytes);
       ++documents_end_) {
    const Document& document = documents_[documents_end_];
    const DocumentNumber number = first_number_ + documents_end_;
    bytes += kDocumentOverhead + document.stored.id.size();
    if (document.number_before != 0) {
      live.row(document.number_before).erase(document.number_before % kLiveDocumentsOfARow);
      --state_.documents;
      count(document.lengths_before, -1);
    }
    if (!document.has_fields) continue;
    live.row(number).insert(number % kLiveDocumentsOfARow);
    ++state_.documents;
    count(document.stored.lengths, 1);
  }
  live_ = live.rows();
}

void SearchBatch::write(kv::Transaction& tx, const IndexKeys& index_keys) const {
  const SearchKeys keys(index_keys);
  if (removed_) tx.clear_range(keys.document(removed_->first), keys.document(removed_->second));
  for (std::size_t i = rows_begin_; i < rows_end_; ++i) tx.set(writes_[i].first, writes_[i].second);
  write_documents(tx, keys, index_keys);
  tx.set(keys.state(), state_.encode());
}

void SearchBatch::write_documents(kv::Transaction& tx, const SearchKeys& keys,
                                  const IndexKeys& index_keys) const {
  for (std::size_t i = documents_begin_; i < documents_end_; ++i) {
    const Document& document = documents_[i];
    if (document.number_before != 0) tx.clear_range(kv::below(keys.document(document.number_before)));
    if (document.has_fields) {
      tx.set(keys.number(document.stored.id), encode_number(first_number_ + i));
    } else if (document.number_before != 0) {
      tx.clear(keys.number(document.stored.id));
    }
    write_left_out(tx, index_keys, document.stored.id, document.left_out_before, document.left_out);
  }
  for (const auto& [row, numbers] : live_) {
    if (numbers.empty()) {
      tx.clear(keys.live(row));
    } else {
      tx.set(keys.live(row), numbers.encode());
    }
  }
  for (const auto& [field, change] : lengths_) {
    if (change.first != 0) tx.add(keys.documents_of_field(field), change.first);
    if (change.second != 0) tx.add(keys.terms_of_field(field), change.second);
  }
}

}  // namespace divan::index::search
