#include "divan/index/views/row_lists.h"

#include <climits>

#include "divan/base/bytes.h"
#include "divan/index/views/view_index.h"
#include "divan/kv/chunks.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;

// Behind the first ones, of all rows of a document together.
constexpr std::uint64_t kMaxMoreChunks = kv::chunk_count(kMaxEmittedBytes);

Error damaged() { return internal_error("The list of a document's rows in views is damaged."); }

// A number of at most `max`.
template <class Int>
Int take_number(std::string_view& bytes, std::uint64_t max) {
  const auto number = take_varint(bytes);
  if (!number || *number > max) throw damaged();
  return static_cast<Int>(*number);
}

std::string_view take_bytes(std::string_view& bytes) {
  const auto size = take_number<std::size_t>(bytes, bytes.size());
  if (size > bytes.size()) throw damaged();
  const auto taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

std::string document_key(const IndexKeys& keys, std::string_view id) {
  std::string key = keys.part(kDocumentsPart);
  Packer(key).string(id);
  return key;
}

std::string chunk_key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) {
  std::string key = document_key(keys, id);
  Packer(key).integer(chunk);
  return key;
}

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

// The bytes of a list, of which the first chunk is given.
std::string read_bytes(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                       std::string first_chunk) {
  if (first_chunk.size() < kv::kChunkBytes) return first_chunk;
  std::string bytes;
  tx.scan(kv::below(document_key(keys, id)), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view, std::string_view piece) {
            bytes += piece;
            return true;
          });
  return bytes;
}

RowPlace take_place(std::string_view& bytes, std::size_t views) {
  RowPlace place;
  place.view = take_number<int>(bytes, INT_MAX);
  if (static_cast<std::size_t>(place.view) >= views) throw damaged();
  place.encoded_key = take_bytes(bytes);
  place.number = take_number<std::uint32_t>(bytes, UINT32_MAX);
  place.chunks = take_number<std::uint32_t>(bytes, kMaxMoreChunks + 1);
  return place;
}

std::vector<RowPlace> decode_places(std::string_view bytes, std::size_t views) {
  std::vector<RowPlace> places;
  std::uint64_t more_chunks = 0;
  while (!bytes.empty()) {
    RowPlace place = take_place(bytes, views);
    if (place.chunks == 0 || (more_chunks += place.chunks - 1) > kMaxMoreChunks) throw damaged();
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

std::string RowPlace::key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) const {
  std::string key = keys.part(kRowsPart);
  key.reserve(key.size() + encoded_key.size() + id.size() + 16);
  append_to(key, id, chunk);
  return key;
}

void RowPlace::append_to(std::string& key, std::string_view id, std::uint32_t chunk) const {
  Packer(key).integer(view);
  key += encoded_key;
  Packer(key).string(id);
  append_u32(key, number);
  append_u16(key, static_cast<std::uint16_t>(chunk));
}

std::string RowPlace::place(std::string_view id) const {
  std::string place = encoded_key;
  Packer(place).string(id);
  append_u32(place, number);
  return place;
}

std::string list_key(const IndexKeys& keys, std::string_view id) { return chunk_key(keys, id, 0); }

std::vector<RowPlace> read_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                const std::optional<std::string>& first_chunk, std::size_t views) {
  if (!first_chunk) return {};
  return decode_places(read_bytes(tx, keys, id, *first_chunk), views);
}

std::vector<RowPlace> read_begun_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                      std::size_t views) {
  const auto first_chunk = tx.get(list_key(keys, id), kv::Isolation::snapshot);
  std::vector<RowPlace> places;
  if (!first_chunk) return places;
  const std::string all = read_bytes(tx, keys, id, *first_chunk);
  std::string_view bytes = all;
  try {
    while (!bytes.empty()) places.push_back(take_place(bytes, views));
  } catch (const Error&) {}  // its end was not written
  return places;
}

std::string encode_list(const std::vector<RowPlace>& places) { return encode_places(places); }

void write_list_chunks(kv::Transaction& tx, const IndexKeys& keys, std::string_view id, std::string_view list,
                       std::size_t first, std::size_t end) {
  for (std::size_t chunk = first; chunk < end; ++chunk) {
    tx.set(chunk_key(keys, id, static_cast<std::uint32_t>(chunk)),
           list.substr(chunk * kv::kChunkBytes, kv::kChunkBytes));
  }
}

void clear_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id) {
  tx.clear_range(kv::below(document_key(keys, id)));
}

void write_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                const std::vector<RowPlace>& before, const std::vector<RowPlace>& places) {
  const std::uint32_t chunks_before = before.empty() ? 0 : kv::chunk_count(encode_places(before).size());
  const std::string bytes = encode_places(places);
  for (std::uint32_t chunk = kv::chunk_count(bytes.size()); chunk < chunks_before; ++chunk) {
    tx.clear(chunk_key(keys, id, chunk));
  }
  kv::for_each_chunk(
      bytes, [&](std::uint32_t chunk, std::string_view piece) { tx.set(chunk_key(keys, id, chunk), piece); });
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

}  // namespace divan::index::views
