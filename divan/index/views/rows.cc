#include "divan/index/views/rows.h"

#include <climits>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/index/views/view_index.h"
#include "divan/kv/chunks.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr int kRowsPart = 1;
constexpr int kDocumentsPart = 2;
constexpr int kCountsPart = 3;
constexpr std::size_t kRowNumberBytes = 4;
constexpr std::size_t kChunkNumberBytes = 2;
constexpr std::uint32_t kMaxChunks = 1u << 16;

// A transaction with this much leaves the following documents to the next one.
constexpr std::size_t kFullBytes = 2'000'000;

Error damaged() { return internal_error("A row of a view in the store is damaged."); }

std::uint64_t take_number(std::string_view& bytes) {
  const auto number = take_varint(bytes);
  if (!number) throw damaged();
  return *number;
}

// A number of at most `max`.
template <class Int>
Int take_number(std::string_view& bytes, std::uint64_t max) {
  const std::uint64_t number = take_number(bytes);
  if (number > max) throw damaged();
  return static_cast<Int>(number);
}

std::string_view take_bytes(std::string_view& bytes, std::uint64_t size) {
  if (size > bytes.size()) throw damaged();
  const auto taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

std::string view_prefix(const IndexKeys& keys, int view) {
  std::string key = keys.part(kRowsPart);
  Packer(key).integer(view);
  return key;
}

std::string document_key(const IndexKeys& keys, std::string_view id) {
  std::string key = keys.part(kDocumentsPart);
  Packer(key).string(id);
  return key;
}

std::string count_key(const IndexKeys& keys, int view) {
  std::string key = keys.part(kCountsPart);
  Packer(key).integer(view);
  return key;
}

// Which row of a document it is: what the list of a document's rows holds.
struct RowPlace {
  int view = 0;
  std::string encoded_key;
  std::uint32_t number = 0;
  std::uint32_t chunks = 1;

  auto operator<=>(const RowPlace&) const = default;

  std::string key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) const {
    std::string key = keys.part(kRowsPart);
    append_to(key, id, chunk);
    return key;
  }
  // What is behind the part.
  void append_to(std::string& key, std::string_view id, std::uint32_t chunk) const {
    Packer(key).integer(view);
    key += encoded_key;
    Packer(key).string(id);
    append_u32(key, number);
    append_u16(key, static_cast<std::uint16_t>(chunk));
  }
};

std::string encode_places(const std::vector<RowPlace>& places) {
  std::string out;
  for (const auto& place : places) {
    append_varint(out, static_cast<std::uint64_t>(place.view));
    append_varint(out, place.encoded_key.size());
    out += place.encoded_key;
    append_varint(out, place.number);
    append_varint(out, place.chunks);
  }
  return out;
}

std::vector<RowPlace> decode_places(std::string_view bytes, std::size_t views) {
  std::vector<RowPlace> places;
  while (!bytes.empty()) {
    RowPlace place;
    place.view = take_number<int>(bytes, INT_MAX);
    if (static_cast<std::size_t>(place.view) >= views) throw damaged();
    place.encoded_key = take_bytes(bytes, take_number(bytes));
    place.number = take_number<std::uint32_t>(bytes, UINT32_MAX);
    place.chunks = take_number<std::uint32_t>(bytes, kMaxChunks);
    places.push_back(std::move(place));
  }
  return places;
}

// The list of a document's rows, in as many chunks as it needs.
std::vector<RowPlace> read_places(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                  const std::optional<std::string>& first_chunk, std::size_t views) {
  if (!first_chunk) return {};
  std::string bytes = *first_chunk;
  if (bytes.size() == kv::kChunkBytes) {
    bytes.clear();
    const std::string prefix = document_key(keys, id);
    tx.scan(kv::below(prefix), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view, std::string_view piece) {
              bytes += piece;
              return true;
            });
  }
  return decode_places(bytes, views);
}

std::string places_key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) {
  std::string key = document_key(keys, id);
  Packer(key).integer(chunk);
  return key;
}

void write_places(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                  const std::vector<RowPlace>& before, const std::vector<RowPlace>& places) {
  const std::uint32_t chunks_before = kv::chunk_count(encode_places(before).size());
  const std::string bytes = encode_places(places);
  for (std::uint32_t chunk = kv::chunk_count(bytes.size()); chunk < chunks_before; ++chunk) {
    tx.clear(places_key(keys, id, chunk));
  }
  kv::for_each_chunk(bytes, [&](std::uint32_t chunk, std::string_view piece) {
    tx.set(places_key(keys, id, chunk), piece);
  });
}

// A row's value: how long the encoded key in the row's key is, the JSON of the key and of the value.
std::string encode_row(std::string_view encoded_key, std::string_view key, std::string_view value) {
  std::string row;
  append_varint(row, encoded_key.size());
  append_varint(row, key.size());
  append_varint(row, value.size());
  row += key;
  row += value;
  return row;
}

// Puts rows together from their chunks, which come in order or, backwards, last first. A range may begin
// inside a row, which then is no part of it.
class RowAssembler {
 public:
  RowAssembler(std::size_t prefix, bool descending, const ViewRowVisitor& visit)
      : prefix_(prefix), descending_(descending), visit_(visit) {}

  bool take(std::string_view key, std::string_view piece) {
    if (key.size() < prefix_ + kChunkNumberBytes) throw damaged();
    const std::string_view place = key.substr(0, key.size() - kChunkNumberBytes);
    const std::uint32_t chunk = read_u16(key.substr(place.size()));
    if (descending_ ? !take_backwards(place, chunk, piece) : !take_forwards(place, chunk, piece)) return true;
    return finish_if_complete();
  }

  /// After the last row.
  void end() const {
    if (!descending_ && next_chunk_ > 0) throw damaged();
  }

 private:
  // Answers whether the row may be complete.
  bool take_forwards(std::string_view place, std::uint32_t chunk, std::string_view piece) {
    if (chunk > 0 && !begun_) return false;
    begun_ = true;
    if (chunk != next_chunk_ || (chunk > 0 && place != place_)) throw damaged();
    if (chunk == 0) place_ = place;
    parts_ += piece;
    ++next_chunk_;
    return true;
  }

  bool take_backwards(std::string_view place, std::uint32_t chunk, std::string_view piece) {
    if (!later_.empty() && (chunk + 1 != next_chunk_ || place != place_)) throw damaged();
    place_ = place;
    next_chunk_ = chunk;
    later_.emplace_back(piece);
    if (chunk > 0) return false;
    for (auto part = later_.rbegin(); part != later_.rend(); ++part) parts_ += *part;
    later_.clear();
    return true;
  }

  bool finish_if_complete() {
    std::string_view rest = parts_;
    const std::uint64_t encoded_size = take_number(rest);
    const std::uint64_t key_size = take_number(rest);
    const std::uint64_t value_size = take_number(rest);
    if (rest.size() < key_size || rest.size() - key_size < value_size) {
      if (descending_) throw damaged();
      return true;
    }
    ViewRow row;
    row.key = take_bytes(rest, key_size);
    row.value = take_bytes(rest, value_size);
    std::string_view key = std::string_view(place_).substr(prefix_);
    row.encoded_key = take_bytes(key, encoded_size);
    Reader reader(key);
    const auto id = reader.take_string();
    if (!id || reader.rest().size() != kRowNumberBytes || !rest.empty()) throw damaged();
    row.id = *id;
    row.place = place_;
    const bool going_on = visit_(row);
    parts_.clear();
    next_chunk_ = 0;
    return going_on;
  }

  const std::size_t prefix_;
  const bool descending_;
  const ViewRowVisitor& visit_;
  std::string place_;
  std::string parts_;
  std::vector<std::string> later_;  // backwards: the pieces of the row so far, last first
  std::uint32_t next_chunk_ = 0;    // forwards: that is to come; backwards: that came last
  bool begun_ = false;
};

}  // namespace

std::string row_key_begin(const IndexKeys& keys, int view, std::string_view encoded_key,
                          std::string_view id) {
  std::string key = view_prefix(keys, view);
  key += encoded_key;
  if (!id.empty()) Packer(key).string(id);
  return key;
}

std::string row_key_end(const IndexKeys& keys, int view, std::string_view encoded_key,
                        std::optional<std::string_view> id) {
  std::string key = view_prefix(keys, view);
  key += encoded_key;
  if (id) Packer(key).string(*id);
  return key + '\xff';
}

RowRange all_rows(const IndexKeys& keys, int view) {
  const std::string prefix = view_prefix(keys, view);
  return {prefix, prefix + '\xff'};
}

RowRange rows_after(RowRange range, std::string_view place) {
  range.begin = std::string(place) + std::string(kChunkNumberBytes + 1, '\xff');
  return range;
}

RowRange rows_before(RowRange range, std::string_view place) {
  range.end = place;
  return range;
}

void visit_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range, bool descending,
                const ViewRowVisitor& visit) {
  if (range.begin >= range.end) return;
  RowAssembler assembler(view_prefix(keys, view).size(), descending, visit);
  tx.scan({range.begin, range.end}, {.reverse = descending, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view piece) { return assembler.take(key, piece); });
  assembler.end();
}

std::pair<std::string_view, std::uint32_t> split_row_key(std::string_view key) {
  if (key.size() < kRowNumberBytes + kChunkNumberBytes) throw damaged();
  const std::string_view place = key.substr(0, key.size() - kChunkNumberBytes);
  return {place, read_u16(key.substr(place.size()))};
}

void check_row(std::string_view place, std::string_view value) {
  const std::uint64_t encoded_size = take_number(value);
  const std::uint64_t key_size = take_number(value);
  const std::uint64_t value_size = take_number(value);
  const std::string_view key = take_bytes(value, key_size);
  if (value.size() != value_size || !json::is_compact(key) || !json::is_compact(value)) throw damaged();
  Reader reader(place);
  if (!reader.take_int()) throw damaged();
  std::string_view rest = reader.rest();
  take_bytes(rest, encoded_size);
  Reader id(rest);
  if (!id.take_string() || id.rest().size() != kRowNumberBytes) throw damaged();
}

void visit_listed_rows(std::string_view list, std::string_view id,
                       const std::function<void(std::string_view)>& visit) {
  std::string key;
  for (const RowPlace& place : decode_places(list, INT_MAX)) {
    for (std::uint32_t chunk = 0; chunk < place.chunks; ++chunk) {
      key.clear();
      place.append_to(key, id, chunk);
      visit(key);
    }
  }
}

std::int64_t count_rows(kv::Transaction& tx, const IndexKeys& keys, int view) {
  return kv::decode_counter(tx.get(count_key(keys, view), kv::Isolation::snapshot));
}

void ViewBatch::add_document(std::string id) { documents_.push_back({std::move(id), {}, 0, false}); }

void ViewBatch::add_failure(std::size_t document) {
  if (!documents_[document].failed) ++failures_;
  documents_[document].failed = true;
}

void ViewBatch::add_row(std::size_t place, int view, std::string_view key, std::string_view value) {
  Document& document = documents_[place];
  Row row{view, encode_key(key), std::string(key), std::string(value)};
  const std::size_t bytes =
      2 * row.encoded_key.size() + row.key.size() + row.value.size() + document.id.size() + 64;
  const bool key_too_long =
      row.encoded_key.size() > kMaxEncodedKeyBytes || row.key.size() > kv::kMaxValueBytes / 2;
  if (key_too_long || document.bytes + bytes > kMaxEmittedBytes) {
    if (!document.failed) {
      log::warning("Rows of document `{}` are left out of a view: {}.", document.id,
                   key_too_long ? "a key is too long" : "it emits too much");
    }
    add_failure(place);
    return;
  }
  document.bytes += bytes;
  bytes_ += bytes;
  ++rows_;
  document.rows.push_back(std::move(row));
}

std::size_t ViewBatch::write(kv::Transaction& tx, const IndexKeys& keys, std::size_t first) {
  std::vector<std::string> list_keys;
  for (std::size_t i = first; i < documents_.size(); ++i)
    list_keys.push_back(places_key(keys, documents_[i].id, 0));
  // The index has one writer at a time (it holds the job's lock), so these reads need no conflicts.
  const auto lists = tx.get_many(list_keys, kv::Isolation::snapshot);

  std::vector<std::int64_t> added(views_);
  std::size_t next = first;
  for (; next < documents_.size(); ++next) {
    const Document& document = documents_[next];
    if (next > first && tx.approximate_size() + document.bytes > kFullBytes) break;
    const auto before = read_places(tx, keys, document.id, lists[next - first], views_);
    std::vector<RowPlace> places;
    std::map<std::pair<int, std::string_view>, std::uint32_t> numbers;
    for (const Row& row : document.rows) {
      const std::string bytes = encode_row(row.encoded_key, row.key, row.value);
      const RowPlace place{row.view, row.encoded_key, numbers[{row.view, row.encoded_key}]++,
                           kv::chunk_count(bytes.size())};
      kv::for_each_chunk(bytes, [&](std::uint32_t chunk, std::string_view piece) {
        tx.set(place.key(keys, document.id, chunk), piece);
      });
      places.push_back(place);
      ++added[static_cast<std::size_t>(row.view)];
    }
    std::sort(places.begin(), places.end());
    for (const RowPlace& old : before) {
      --added[static_cast<std::size_t>(old.view)];
      const auto same =
          std::lower_bound(places.begin(), places.end(), RowPlace{old.view, old.encoded_key, old.number, 0});
      const bool stays = same != places.end() && same->view == old.view && same->number == old.number &&
                         same->encoded_key == old.encoded_key;
      for (std::uint32_t chunk = stays ? same->chunks : 0; chunk < old.chunks; ++chunk)
        tx.clear(old.key(keys, document.id, chunk));
    }
    if (before != places) write_places(tx, keys, document.id, before, places);
  }
  for (std::size_t view = 0; view < added.size(); ++view) {
    if (added[view] != 0) tx.add(count_key(keys, static_cast<int>(view)), added[view]);
  }
  return next;
}

}  // namespace divan::index::views
