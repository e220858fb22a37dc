#include "divan/index/views/row_lists.h"

#include <climits>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/index/views/view_set.h"
#include "divan/kv/chunks.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;

// Limit for the additional chunks of all rows of a document together.
constexpr std::uint64_t kMaxMoreChunks = kv::chunk_count(kMaxEmittedBytes);

Error damaged() { return internal_error("The list of a document's rows in views is damaged."); }

// Reads a number of at most `max`.
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

std::string encode_positions(const std::vector<RowPosition>& positions) {
  std::string out;
  for (const auto& position : positions) {
    append_varint(out, static_cast<std::uint64_t>(position.view));
    append_varint(out, position.encoded_key.size());
    out += position.encoded_key;
    append_varint(out, position.number);
    append_varint(out, position.chunks);
  }
  return out;
}

// The bytes of a list whose first chunk is given.
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

RowPosition take_position(std::string_view& bytes, std::size_t views) {
  RowPosition position;
  position.view = take_number<int>(bytes, INT_MAX);
  if (static_cast<std::size_t>(position.view) >= views) throw damaged();
  position.encoded_key = take_bytes(bytes);
  position.number = take_number<std::uint32_t>(bytes, UINT32_MAX);
  position.chunks = take_number<std::uint32_t>(bytes, kMaxMoreChunks + 1);
  return position;
}

std::vector<RowPosition> decode_positions(std::string_view bytes, std::size_t views) {
  std::vector<RowPosition> positions;
  std::uint64_t more_chunks = 0;
  while (!bytes.empty()) {
    RowPosition position = take_position(bytes, views);
    if (position.chunks == 0 || (more_chunks += position.chunks - 1) > kMaxMoreChunks) throw damaged();
    positions.push_back(std::move(position));
  }
  return positions;
}

}  // namespace

std::string RowPosition::key(const IndexKeys& keys, std::string_view id, std::uint32_t chunk) const {
  std::string key = keys.part(kRowsPart);
  key.reserve(key.size() + encoded_key.size() + id.size() + 16);
  append_to(key, id, chunk);
  return key;
}

void RowPosition::append_to(std::string& key, std::string_view id, std::uint32_t chunk) const {
  DIVAN_CHECK(view >= 0 && chunk <= UINT16_MAX, "chunk {} of a row of view {}", chunk, view);
  Packer(key).integer(view);
  key += encoded_key;
  Packer(key).string(id);
  append_u32(key, number);
  append_u16(key, static_cast<std::uint16_t>(chunk));
}

std::string RowPosition::position(std::string_view id) const {
  std::string position = encoded_key;
  Packer(position).string(id);
  append_u32(position, number);
  return position;
}

std::string list_key(const IndexKeys& keys, std::string_view id) { return chunk_key(keys, id, 0); }

std::vector<RowPosition> read_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                   const std::optional<std::string>& first_chunk, std::size_t views) {
  if (!first_chunk) return {};
  return decode_positions(read_bytes(tx, keys, id, *first_chunk), views);
}

std::vector<RowPosition> read_begun_list(kv::Transaction& tx, const IndexKeys& keys, std::string_view id,
                                         std::size_t views) {
  const auto first_chunk = tx.get(list_key(keys, id), kv::Isolation::snapshot);
  std::vector<RowPosition> positions;
  if (!first_chunk) return positions;
  const std::string all = read_bytes(tx, keys, id, *first_chunk);
  std::string_view bytes = all;
  try {
    while (!bytes.empty()) positions.push_back(take_position(bytes, views));
  } catch (const Error&) {}  // the end of the list is missing
  return positions;
}

std::string encode_list(const std::vector<RowPosition>& positions) { return encode_positions(positions); }

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
                const std::vector<RowPosition>& before, const std::vector<RowPosition>& positions) {
  const std::uint32_t chunks_before = before.empty() ? 0 : kv::chunk_count(encode_positions(before).size());
  const std::string bytes = encode_positions(positions);
  for (std::uint32_t chunk = kv::chunk_count(bytes.size()); chunk < chunks_before; ++chunk) {
    tx.clear(chunk_key(keys, id, chunk));
  }
  kv::for_each_chunk(
      bytes, [&](std::uint32_t chunk, std::string_view piece) { tx.set(chunk_key(keys, id, chunk), piece); });
}

void visit_listed_rows(std::string_view list, std::string_view id,
                       const std::function<void(std::string_view)>& visit) {
  std::string key;
  for (const RowPosition& position : decode_positions(list, INT_MAX)) {
    for (std::uint32_t chunk = 0; chunk < position.chunks; ++chunk) {
      key.clear();
      position.append_to(key, id, chunk);
      visit(key);
    }
  }
}

}  // namespace divan::index::views
