#include "divan/index/search/rows.h"

#include <bit>

#include "divan/base/bytes.h"
#include "divan/kv/chunks.h"

namespace divan::index::search {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

[[noreturn]] void throw_damaged(std::string_view what) {
  throw internal_error("The " + std::string(what) + " of a full-text index is damaged.");
}

template <class Value>
Value required(std::optional<Value> value, std::string_view what) {
  if (!value) throw_damaged(what);
  return *std::move(value);
}

std::uint64_t take(std::string_view& bytes) {
  if (!bytes.empty() && static_cast<unsigned char>(bytes.front()) < 0x80) {  // most have one byte
    const auto value = static_cast<std::uint64_t>(bytes.front());
    bytes.remove_prefix(1);
    return value;
  }
  return required(take_varint(bytes), "row");
}

void skip_varints(std::string_view& bytes, std::uint64_t count) {
  std::size_t at = 0;
  for (; count > 0; --count) {
    while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) >= 0x80) ++at;
    if (at++ >= bytes.size()) throw_damaged("row");
  }
  bytes.remove_prefix(at);
}

std::string_view take_bytes(std::string_view& bytes, std::size_t size) {
  if (bytes.size() < size) throw_damaged("row");
  const auto taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

// What is before the positions.
void take_head(std::string_view& bytes, Occurrences& occurrences) {
  const auto head = take(bytes);
  occurrences.frequency = static_cast<std::uint32_t>(head >> 1);
  occurrences.boost = (head & 1) != 0 ? std::bit_cast<float>(read_u32(take_bytes(bytes, sizeof(float)))) : 1;
  occurrences.length = static_cast<std::uint32_t>(take(bytes));
}

// The size of the payload at the beginning of `bytes`.
std::size_t payload_size(Column column, std::string_view bytes) {
  std::string_view rest = bytes;
  switch (column) {
    case Column::terms: {
      Occurrences occurrences;
      take_head(rest, occurrences);
      skip_varints(rest, occurrences.frequency);
      break;
    }
    case Column::numbers: {
      const auto count = take(rest);
      if (count > kMaxNumbers) throw_damaged("row");
      take_bytes(rest, count * sizeof(double));
      break;
    }
    default: {
      for (auto count = take(rest); count > 0; --count) take_bytes(rest, take(rest));
    }
  }
  return bytes.size() - rest.size();
}

}  // namespace

std::string SearchKeys::level(int level) const {
  std::string key = part(Part::entries);
  Packer(key).integer(level);
  return key;
}

std::string SearchKeys::rows(int level, Column column, std::string_view field) const {
  std::string key = this->level(level);
  Packer(key).integer(static_cast<int>(column)).string(field);
  return key;
}

std::string SearchKeys::row_begin(int level, std::string_view field, std::string_view term) const {
  std::string key = rows(level, Column::terms, field);
  Packer(key).string(term);
  return key;
}

std::string SearchKeys::document(DocumentNumber number) const {
  std::string key = part(Part::documents);
  Packer(key).integer(number);
  return key;
}

std::string SearchKeys::document(DocumentNumber number, std::uint32_t chunk) const {
  std::string key = document(number);
  Packer(key).integer(chunk);
  return key;
}

std::string SearchKeys::live(std::uint64_t row) const {
  std::string key = part(Part::live);
  Packer(key).integer(row);
  return key;
}

std::string SearchKeys::number(std::string_view id) const {
  std::string key = part(Part::numbers);
  Packer(key).string(id);
  return key;
}

std::string SearchKeys::documents_of_field(std::string_view field) const {
  std::string key = part(Part::lengths);
  Packer(key).string(field).integer(0);
  return key;
}

std::string SearchKeys::terms_of_field(std::string_view field) const {
  std::string key = part(Part::lengths);
  Packer(key).string(field).integer(1);
  return key;
}

std::string row_suffix(Column column, std::string_view field, std::string_view term) {
  std::string suffix;
  Packer packer(suffix);
  packer.integer(static_cast<int>(column)).string(field);
  if (column == Column::terms) packer.string(term);
  return suffix;
}

RowKey parse_row_key(std::string_view rest) {
  Reader reader(rest);
  const auto column = required(reader.take_int(), "key of a row");
  if (column < 0 || column > static_cast<int>(Column::facets)) throw_damaged("key of a row");
  required(reader.take_string(), "key of a row");
  if (column == static_cast<int>(Column::terms)) required(reader.take_string(), "key of a row");
  RowKey key{.suffix = std::string(rest.substr(0, rest.size() - reader.rest().size()))};
  key.first = required(reader.take_uint(), "key of a row");
  if (!reader.at_end()) throw_damaged("key of a row");
  return key;
}

bool EntryReader::next_number() {
  if (rest_.empty()) return false;
  const auto delta = take(rest_);
  if (is_first_ != (delta == 0)) throw_damaged("row");
  is_first_ = false;
  number_ += delta;
  return true;
}

bool EntryReader::next(DocumentNumber& number, Occurrences& occurrences) {
  if (!next_number()) return false;
  number = number_;
  take_head(rest_, occurrences);
  const std::string_view before = rest_;
  skip_varints(rest_, occurrences.frequency);
  occurrences.positions = before.substr(0, before.size() - rest_.size());
  return true;
}

bool EntryReader::next(Entry& entry) {
  if (!next_number()) return false;
  entry.number = number_;
  entry.payload = take_bytes(rest_, payload_size(column_, rest_));
  return true;
}

void EntryWriter::add(DocumentNumber number, std::string_view payload) {
  if (value_.empty()) first_ = last_ = number;
  append_varint(value_, number - last_);
  value_ += payload;
  last_ = number;
}

std::string encode_occurrences(const std::vector<std::uint32_t>& positions, std::uint32_t length,
                               float boost) {
  std::string payload;
  append_varint(payload, positions.size() << 1 | (boost == 1 ? 0U : 1U));
  if (boost != 1) append_u32(payload, std::bit_cast<std::uint32_t>(boost));
  append_varint(payload, length);
  std::uint32_t last = 0;
  for (const auto position : positions) {
    append_varint(payload, position - last);
    last = position;
  }
  return payload;
}

Occurrences decode_occurrences(std::string_view payload) {
  Occurrences occurrences;
  take_head(payload, occurrences);
  occurrences.positions = payload;
  return occurrences;
}

std::vector<std::uint32_t> decode_positions(const Occurrences& occurrences) {
  std::vector<std::uint32_t> positions;
  positions.reserve(occurrences.frequency);
  std::string_view rest = occurrences.positions;
  std::uint32_t last = 0;
  while (!rest.empty()) positions.push_back(last += static_cast<std::uint32_t>(take(rest)));
  return positions;
}

std::string encode_numbers(const std::vector<double>& numbers) {
  std::string payload;
  append_varint(payload, numbers.size());
  for (const double number : numbers) append_u64(payload, std::bit_cast<std::uint64_t>(number));
  return payload;
}

std::vector<double> decode_numbers(std::string_view payload) {
  std::vector<double> numbers(take(payload));
  for (double& number : numbers)
    number = std::bit_cast<double>(read_u64(take_bytes(payload, sizeof(double))));
  return numbers;
}

std::string encode_strings(const std::vector<std::string>& strings) {
  std::string payload;
  append_varint(payload, strings.size());
  for (const auto& text : strings) {
    append_varint(payload, text.size());
    payload += text;
  }
  return payload;
}

std::vector<std::string> decode_strings(std::string_view payload) {
  std::vector<std::string> strings(take(payload));
  for (auto& text : strings) text = take_bytes(payload, take(payload));
  return strings;
}

std::string StoredDocument::encode() const {
  std::string value;
  Packer packer(value);
  packer.string(id).begin_nested();
  for (const auto& [field, length] : lengths) packer.string(field).integer(length);
  packer.end_nested().string(fields);
  return value;
}

StoredDocument StoredDocument::decode(std::string_view value) {
  constexpr std::string_view kWhat = "stored document";
  Reader reader(value);
  StoredDocument document;
  document.id = required(reader.take_string(), kWhat);
  if (!reader.begin_nested()) throw_damaged(kWhat);
  while (auto field = reader.take_string()) {
    const auto length = required(reader.take_int(), kWhat);
    if (length < 0 || length > UINT32_MAX) throw_damaged(kWhat);
    document.lengths.emplace_back(*std::move(field), static_cast<std::uint32_t>(length));
  }
  if (!reader.end_nested()) throw_damaged(kWhat);
  document.fields = required(reader.take_string(), kWhat);
  if (!reader.at_end()) throw_damaged(kWhat);
  return document;
}

std::vector<StoredDocument> read_documents(kv::Transaction& tx, const SearchKeys& keys,
                                           std::span<const DocumentNumber> numbers) {
  std::vector<std::string> first_keys;
  for (const auto number : numbers) first_keys.push_back(keys.document(number, 0));
  const auto first_chunks = tx.get_many(first_keys, kv::Isolation::snapshot);
  std::vector<StoredDocument> documents;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::string value = first_chunks[i].value_or("");
    if (value.size() == kv::kChunkBytes) {
      tx.scan({first_keys[i] + '\0', kv::below(keys.document(numbers[i])).end},
              {.isolation = kv::Isolation::snapshot}, [&](std::string_view, std::string_view piece) {
                value += piece;
                return true;
              });
    }
    documents.push_back(StoredDocument::decode(value));
  }
  return documents;
}

std::string encode_number(DocumentNumber number) {
  std::string value;
  Packer(value).integer(number);
  return value;
}

DocumentNumber decode_number(std::string_view value) {
  Reader reader(value);
  const auto number = required(reader.take_uint(), "number of a document");
  if (!reader.at_end()) throw_damaged("number of a document");
  return number;
}

std::string IndexState::encode() const {
  std::string value;
  Packer packer(value);
  packer.integer(next_number).integer(unfinished).integer(documents).begin_nested();
  for (const auto count : segments) packer.integer(count);
  packer.end_nested();
  if (merge)
    packer.integer(merge->level)
        .integer(merge->target)
        .integer(merge->end)
        .integer(merge->segments)
        .bytes(merge->cursor);
  return value;
}

IndexState IndexState::decode(std::string_view value) {
  constexpr std::string_view kWhat = "state";
  Reader reader(value);
  IndexState state;
  state.next_number = required(reader.take_uint(), kWhat);
  state.unfinished = required(reader.take_uint(), kWhat);
  state.documents = required(reader.take_int(), kWhat);
  if (!reader.begin_nested()) throw_damaged(kWhat);
  while (const auto count = reader.take_int()) state.segments.push_back(*count);
  if (!reader.end_nested()) throw_damaged(kWhat);
  if (reader.at_end()) return state;
  auto& merge = state.merge.emplace();
  merge.level = static_cast<int>(required(reader.take_int(), kWhat));
  merge.target = static_cast<int>(required(reader.take_int(), kWhat));
  merge.end = required(reader.take_uint(), kWhat);
  merge.segments = required(reader.take_int(), kWhat);
  merge.cursor = required(reader.take_bytes(), kWhat);
  if (!reader.at_end()) throw_damaged(kWhat);
  return state;
}

IndexState read_state(kv::Transaction& tx, const SearchKeys& keys) {
  const auto value = tx.get(keys.state(), kv::Isolation::snapshot);
  return value ? IndexState::decode(*value) : IndexState();
}

}  // namespace divan::index::search
