#include "divan/index/search/check.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/catalog.h"

namespace divan::index::search {
namespace {

using kv::tuple::Reader;

template <class Value>
Value required(std::optional<Value> value) {
  if (!value) throw internal_error("this is not a key of a full-text index");
  return *std::move(value);
}

}  // namespace

bool Check::Tally::is_live(DocumentNumber number) const {
  const auto row = live.find(number / kLiveDocumentsOfARow);
  return row != live.end() && row->second.contains(number % kLiveDocumentsOfARow);
}

bool Check::row(std::string_view key, std::string_view value) {
  const auto number = docs::database_number(key);
  if (!number) return false;
  Reader reader(key);
  reader.take_string();
  reader.take_int();
  if (reader.take_int() != static_cast<std::int64_t>(docs::Section::indexes)) return false;
  const auto signature = reader.take_bytes();
  const auto part = reader.take_int();
  if (!signature || !part || *part < static_cast<int>(Part::state) || *part > static_cast<int>(Part::lengths))
    return false;
  Tally& tally = tallies_[{*number, *signature}];
  try {
    index_row(tally, Part{static_cast<int>(*part)}, reader.rest(), value);
  } catch (const Error& error) { findings_.add(error.reason(), key); }
  return true;
}

void Check::index_row(Tally& tally, Part part, std::string_view rest, std::string_view value) {
  Reader reader(rest);
  if (part != Part::documents) end_document(tally);
  switch (part) {
    case Part::state: tally.state = IndexState::decode(value); return;
    case Part::live: {
      const auto row = required(reader.take_uint());
      auto& numbers = tally.live[row] = NumberSet::decode(value);
      for (const auto number : numbers.numbers())
        tally.live_numbers.add(std::to_string(row * kLiveDocumentsOfARow + number));
      return;
    }
    case Part::entries: entry_row(tally, rest, value); return;
    case Part::documents: document_row(tally, rest, value); return;
    case Part::numbers: {
      required(reader.take_string());
      tally.named.add(std::to_string(decode_number(value)));
      return;
    }
    case Part::lengths: {
      auto& counters = tally.counters[required(reader.take_string())];
      const auto which = required(reader.take_int());
      if (value.size() != 8 || (which != 0 && which != 1))
        throw internal_error("a counter of a full-text index is damaged");
      (which == 0 ? counters.documents : counters.terms) = kv::decode_counter(value);
    }
  }
}

void Check::entry_row(Tally& tally, std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto level = required(reader.take_int());
  if (level < 0 || level >= static_cast<std::int64_t>(tally.state.levels()))
    throw internal_error("a row has an unknown level");
  const auto key = parse_row_key(reader.rest());
  Reader suffix(key.suffix);
  const Column column{static_cast<int>(required(suffix.take_int()))};
  const auto field = required(suffix.take_string());
  EntryReader entries(column, key.first, value);
  for (Entry entry; entries.next(entry);) {
    if (entry.number >= tally.state.next_number)
      throw internal_error("an entry has a number that no document has had");
    if (column == Column::terms && tally.is_live(entry.number))
      tally.entries[field].terms += decode_occurrences(entry.payload).frequency;
  }
}

void Check::document_row(Tally& tally, std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto number = required(reader.take_uint());
  const auto chunk = required(reader.take_int());
  const auto id = std::to_string(number);
  if (tally.document && tally.document->id() != id) end_document(tally);
  if (!tally.document) {
    tally.document.emplace(id);
    if (tally.state.unfinished == 0 || number < tally.state.unfinished) tally.stored.add(id);
  }
  if (!tally.document->add(chunk, value)) throw internal_error("the previous chunk is missing or incomplete");
}

void Check::end_document(Tally& tally) {
  if (!tally.document) return;
  const auto document = *std::exchange(tally.document, std::nullopt);
  // What an interrupted batch has written may be incomplete.
  const auto number = static_cast<DocumentNumber>(std::stoull(document.id()));
  if (tally.state.unfinished != 0 && number >= tally.state.unfinished) return;
  try {
    const auto text = document.text();
    if (!text) throw internal_error("chunks are missing");
    const auto stored = StoredDocument::decode(*text);
    if (!json::is_compact(stored.fields)) throw internal_error("the stored fields are damaged");
    for (const auto& [field, length] : stored.lengths) {
      ++tally.lengths[field].documents;
      tally.lengths[field].terms += length;
    }
  } catch (const Error& error) {
    tally.values.add(fmt::format("document {}: {}", document.id(), error.reason()));
  }
}

void Check::finish(kv::RowSource&) {
  for (auto& [index, tally] : tallies_) {
    end_document(tally);
    const auto name = name_of_(index.first);
    if (!name) continue;
    compare(tally, [&, &signature = index.second](std::string_view what) {
      findings_.add(fmt::format("Database {}, full-text index {}: {}", *name, to_hex(signature), what));
    });
  }
}

void Check::compare(const Tally& tally, const std::function<void(std::string_view)>& found) const {
  for (const auto& text : tally.values.kept()) found(text);
  const auto& live = tally.live_numbers;
  if (tally.state.documents != static_cast<std::int64_t>(live.count()))
    found(fmt::format("it counts {} documents, but {} are live.", tally.state.documents, live.count()));
  if (live != tally.named)
    found(fmt::format("its {} live documents and the {} documents with an id do not match.", live.count(),
                      tally.named.count()));
  if (live != tally.stored)
    found(fmt::format("its {} live documents and the {} documents with fields do not match.", live.count(),
                      tally.stored.count()));
  for (const auto& [field, counters] : tally.counters) {
    const auto stored = tally.lengths.find(field);
    const auto entries = tally.entries.find(field);
    const Counters expected = stored == tally.lengths.end() ? Counters() : stored->second;
    const auto terms = entries == tally.entries.end() ? 0 : entries->second.terms;
    if (counters != expected)
      found(fmt::format("field {}: it counts {} documents with {} terms, but there are {} with {}.", field,
                        counters.documents, counters.terms, expected.documents, expected.terms));
    if (terms != counters.terms)
      found(
          fmt::format("field {}: it counts {} terms, but has entries of {}.", field, counters.terms, terms));
  }
  for (const auto& [field, lengths] : tally.lengths) {
    if (!tally.counters.contains(field) && lengths != Counters())
      found(fmt::format("field {}: the counters are missing.", field));
  }
}

}  // namespace divan::index::search
