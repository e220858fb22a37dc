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
// About as many bytes does a row take in a transaction beside its key's suffix and its value.
constexpr std::size_t kRowOverhead = 64;
// The difference between the positions of a field's values: a phrase does not go from one to the next.
constexpr std::uint32_t kValueGap = 100;
constexpr std::size_t kShownBytes = 60;

}  // namespace

// The terms of one field of a document.
struct SearchBatch::FieldTerms {
  absl::flat_hash_map<std::string, std::vector<std::uint32_t>> positions;
  std::uint32_t length = 0;
  std::uint32_t next_position = 0;
  float boost = 1;
  bool is_indexed = false;
  std::vector<double> numbers;
  std::vector<std::string> strings, facets;
  std::vector<std::string> stored;  // JSON
};

void SearchBatch::add_document(std::string id) { documents_.emplace_back().id = std::move(id); }

void SearchBatch::add_failure(std::size_t index, std::string_view reason) {
  Document& document = documents_[index];
  if (document.left_out) return;
  ++failures_;
  document.left_out = LeftOut{0, std::string(utf8_prefix(reason, LeftOut::kMaxReasonBytes))};
}

void SearchBatch::add_fields(std::size_t index, std::span<const Field> fields) {
  DIVAN_CHECK(index < documents_.size(), "fields of document {} of {}", index, documents_.size());
  std::map<std::string, FieldTerms> by_name;
  std::vector<const std::string*> names;  // in the order of their first values
  for (const Field& field : fields) {
    if (field.name.size() > kMaxFieldBytes) {
      add_failure(index, fmt::format("The name of field `{}...` has more than {} bytes.",
                                     utf8_prefix(field.name, kShownBytes), kMaxFieldBytes));
      continue;
    }
    const auto [found, is_new] = by_name.try_emplace(field.name);
    if (is_new) names.push_back(&found->first);
    FieldTerms& terms = found->second;
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
    if (terms.numbers.size() > kMaxValues || terms.strings.size() > kMaxValues) {
      add_failure(index, fmt::format("Field `{}` has more than {} values; only the first ones can be used to "
                                     "sort, count and compare numbers.",
                                     utf8_prefix(field.name, kShownBytes), kMaxValues));
      terms.numbers.resize(std::min(terms.numbers.size(), kMaxValues));
      terms.strings.resize(std::min(terms.strings.size(), kMaxValues));
      terms.facets.resize(std::min(terms.facets.size(), kMaxValues));
    }
  }

  Document& document = documents_[index];
  json::Writer stored(document.fields);
  stored.begin_object();
  for (const auto* name : names) {
    const FieldTerms& terms = by_name.find(*name)->second;
    if (terms.stored.empty()) continue;
    stored.key(*name);
    if (terms.stored.size() > 1) stored.begin_array();
    for (const auto& value : terms.stored) stored.raw(value);
    if (terms.stored.size() > 1) stored.end_array();
  }
  stored.end_object();
  document.has_fields = !names.empty();
  bytes_ += document.fields.size() + document.id.size();
  for (const auto& [name, terms] : by_name) {
    if (terms.is_indexed) document.lengths[name] = terms.length;
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
}

void SearchBatch::add_terms(std::size_t document, const Field& field, std::string_view text,
                            FieldTerms& terms) {
  terms.strings.emplace_back(utf8_prefix(text, kMaxStringBytes));
  if (field.is_facet && !text.empty()) terms.facets.push_back(terms.strings.back());
  if (!field.is_indexed) return;
  terms.is_indexed = true;
  terms.boost *= field.boost;
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
    if (positions.size() == kMaxPositions) return;
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
  if (!is_planned_) {
    DIVAN_CHECK(first == 0, "a batch is written from document {} on", first);
    const SearchKeys keys(index_keys);
    const auto tx = store.begin();
    state_ = read_state(*tx, keys);
    if (!so_far.all_new) read_before(*tx, keys, index_keys);
    plan_rows(keys);
    plan_documents(*tx, keys);
    is_planned_ = true;
  }
  from_ = to_;
  for (std::size_t bytes = 0; to_ < writes_.size() && bytes < kFullTransactionBytes; ++to_)
    bytes += writes_[to_].first.size() + writes_[to_].second.size();
  return to_ == writes_.size() ? documents_.size() : first;
}

// Reads what the index has of these documents.
void SearchBatch::read_before(kv::Transaction& tx, const SearchKeys& keys, const IndexKeys& index_keys) {
  std::vector<std::string> number_keys, record_keys;
  for (const auto& document : documents_) {
    number_keys.push_back(keys.number(document.id));
    record_keys.push_back(left_out_key(index_keys, document.id));
  }
  const auto numbers = tx.get_many(number_keys, kv::Isolation::snapshot);
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    if (numbers[i]) documents_[i].before = IndexedDocument::decode(*numbers[i]);
  }
  if (!lacks_rows(tx, index_keys)) return;
  const auto records = tx.get_many(record_keys, kv::Isolation::snapshot);
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    if (records[i]) documents_[i].left_out_before = decode_left_out(*records[i]);
  }
}

// The rows that can be written before the documents are visible. The number of a document is the first free
// one and its index in the batch.
void SearchBatch::plan_rows(const SearchKeys& keys) {
  const std::string level = keys.level(0);
  for (auto& [suffix, writers] : rows_) {
    for (auto& writer : writers) {
      std::string key = level + suffix;
      kv::tuple::Packer(key).integer(state_.next_number + writer.first());
      writes_.emplace_back(std::move(key), writer.value());
    }
  }
  rows_.clear();
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    Document& document = documents_[i];
    if (!document.has_fields) continue;
    const StoredDocument stored{document.id, std::move(document.fields)};
    kv::for_each_chunk(stored.encode(), [&](std::uint32_t chunk, std::string_view piece) {
      writes_.emplace_back(keys.document(state_.next_number + i, chunk), piece);
    });
  }
  std::ranges::sort(writes_);
}

// What makes the documents visible instead of their earlier versions.
void SearchBatch::plan_documents(kv::Transaction& tx, const SearchKeys& keys) {
  LiveDocuments live(tx, keys);
  std::vector<DocumentNumber> changed;
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    if (documents_[i].before) changed.push_back(documents_[i].before->number);
    changed.push_back(state_.next_number + i);
  }
  live.read(changed);
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    const Document& document = documents_[i];
    if (document.before) {
      live.row(document.before->number).erase(document.before->number % kLiveDocumentsOfARow);
      --state_.documents;
      for (const auto& [field, length] : document.before->lengths) {
        --lengths_[field].first;
        lengths_[field].second -= length;
      }
    }
    if (!document.has_fields) continue;
    live.row(state_.next_number + i).insert((state_.next_number + i) % kLiveDocumentsOfARow);
    ++state_.documents;
    for (const auto& [field, length] : document.lengths) {
      ++lengths_[field].first;
      lengths_[field].second += length;
    }
  }
  live_ = live.rows();
  if (writes_.empty()) return;
  if (state_.segments.empty()) state_.segments.push_back(0);
  ++state_.segments[0];
}

void SearchBatch::write(kv::Transaction& tx, const IndexKeys& index_keys) const {
  const SearchKeys keys(index_keys);
  if (from_ == 0 && state_.unfinished != 0)
    tx.clear_range(keys.document(state_.unfinished), keys.document(state_.next_number));
  for (std::size_t i = from_; i < to_; ++i) tx.set(writes_[i].first, writes_[i].second);
  if (to_ == writes_.size()) return write_documents(tx, keys, index_keys);
  if (from_ > 0) return;
  IndexState state = read_state(tx, keys);
  state.next_number = state_.next_number + documents_.size();
  state.unfinished = state_.next_number;
  tx.set(keys.state(), state.encode());
}

void SearchBatch::write_documents(kv::Transaction& tx, const SearchKeys& keys,
                                  const IndexKeys& index_keys) const {
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    const Document& document = documents_[i];
    if (document.before) tx.clear_range(kv::below(keys.document(document.before->number)));
    if (document.has_fields) {
      IndexedDocument indexed{.number = state_.next_number + i, .lengths = {}};
      indexed.lengths.assign(document.lengths.begin(), document.lengths.end());
      tx.set(keys.number(document.id), indexed.encode());
    } else if (document.before) {
      tx.clear(keys.number(document.id));
    }
    write_left_out(tx, index_keys, document.id, document.left_out_before, document.left_out);
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
  IndexState state = state_;
  state.next_number += documents_.size();
  state.unfinished = 0;
  tx.set(keys.state(), state.encode());
}

}  // namespace divan::index::search
