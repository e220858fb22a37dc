#include "divan/index/views/rows.h"

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/collation/collation.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr std::size_t kRowNumberBytes = 4;
constexpr std::size_t kChunkNumberBytes = 2;

Error damaged() { return internal_error("A row of a view in the store is damaged."); }

std::uint64_t take_number(std::string_view& bytes) {
  const auto number = take_varint(bytes);
  if (!number) throw damaged();
  return *number;
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

std::string count_key(const IndexKeys& keys, int view) {
  std::string key = keys.part(kCountsPart);
  Packer(key).integer(view);
  return key;
}

// Joins the chunks of rows, which arrive in order or, backwards, in reverse order. A range may begin inside a
// row, which is then not part of it.
class RowAssembler {
 public:
  RowAssembler(std::size_t prefix, bool descending, const ViewRowVisitor& visit)
      : prefix_(prefix), descending_(descending), visit_(visit) {}

  bool add(std::string_view key, std::string_view piece) {
    if (key.size() < prefix_ + kChunkNumberBytes) throw damaged();
    const std::string_view position = key.substr(0, key.size() - kChunkNumberBytes);
    const std::uint32_t chunk = read_u16(key.substr(position.size()));
    if (descending_ ? !add_backwards(position, chunk, piece) : !add_forwards(position, chunk, piece))
      return true;
    return finish_if_complete();
  }

  /// To be called after the last chunk: throws if the last row is incomplete.
  void end() const {
    if (!descending_ && next_chunk_ > 0) throw damaged();
  }

 private:
  // Returns true if the row may be complete.
  bool add_forwards(std::string_view position, std::uint32_t chunk, std::string_view piece) {
    if (chunk > 0 && !begun_) return false;
    begun_ = true;
    if (chunk != next_chunk_ || (chunk > 0 && position != position_)) throw damaged();
    if (chunk == 0) position_ = position;
    parts_ += piece;
    ++next_chunk_;
    return true;
  }

  bool add_backwards(std::string_view position, std::uint32_t chunk, std::string_view piece) {
    if (!later_.empty() && (chunk + 1 != next_chunk_ || position != position_)) throw damaged();
    position_ = position;
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
    const std::uint64_t rest_size = encoded_size > kMaxWholeKeyBytes ? encoded_size - kMaxWholeKeyBytes : 0;
    if (rest.size() - key_size - value_size < rest_size) {
      if (descending_) throw damaged();
      return true;
    }
    ViewRow row;
    row.key = take_bytes(rest, key_size);
    row.value = take_bytes(rest, value_size);
    std::string_view key = std::string_view(position_).substr(prefix_);
    if (rest_size == 0) {
      row.encoded_key = take_bytes(key, encoded_size);
    } else {
      long_key_ = take_bytes(key, kMaxWholeKeyBytes);
      long_key_ += take_bytes(rest, rest_size);
      row.encoded_key = long_key_;
      take_bytes(key, kKeyDigestBytes);
    }
    Reader reader(key);
    const auto id = reader.take_string();
    if (!id || reader.rest().size() != kRowNumberBytes || !rest.empty()) throw damaged();
    row.id = *id;
    row.position = position_;
    const bool going_on = visit_(row);
    parts_.clear();
    next_chunk_ = 0;
    return going_on;
  }

  const std::size_t prefix_;
  const bool descending_;
  const ViewRowVisitor& visit_;
  std::string position_;
  std::string parts_;
  std::string long_key_;
  std::vector<std::string> later_;  // backwards: the chunks of the row so far, last first
  std::uint32_t next_chunk_ = 0;    // forwards: the expected chunk; backwards: the chunk that was read last
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
  return {prefix, prefix + std::string(collation::kAfterAllKeys)};
}

RowRange rows_after(RowRange range, std::string_view position) {
  range.begin = std::string(position) + std::string(kChunkNumberBytes + 1, '\xff');
  return range;
}

RowRange rows_before(RowRange range, std::string_view position) {
  range.end = position;
  return range;
}

void visit_stored_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range,
                       bool descending, const ViewRowVisitor& visit) {
  if (range.begin >= range.end) return;
  RowAssembler assembler(view_prefix(keys, view).size(), descending, visit);
  tx.scan({range.begin, range.end}, {.reverse = descending, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view piece) { return assembler.add(key, piece); });
  assembler.end();
}

std::string partition_prefix(std::string_view partition) {
  std::string prefix;
  Packer(prefix).string(partition);
  return prefix;
}

std::string stored_key(std::string_view encoded_key) {
  if (!is_long_key(encoded_key)) return std::string(encoded_key);
  return std::string(encoded_key.substr(0, kMaxWholeKeyBytes)) + sha256(encoded_key, kKeyDigestBytes);
}

std::string encode_row(std::string_view encoded_key, std::string_view key, std::string_view value) {
  std::string row;
  const std::string_view rest =
      is_long_key(encoded_key) ? encoded_key.substr(kMaxWholeKeyBytes) : std::string_view();
  row.reserve(15 + key.size() + value.size() + rest.size());
  append_varint(row, encoded_key.size());
  append_varint(row, key.size());
  append_varint(row, value.size());
  row += key;
  row += value;
  row += rest;
  return row;
}

std::pair<std::string_view, std::uint32_t> split_row_key(std::string_view key) {
  if (key.size() < kRowNumberBytes + kChunkNumberBytes) throw damaged();
  const std::string_view position = key.substr(0, key.size() - kChunkNumberBytes);
  return {position, read_u16(key.substr(position.size()))};
}

void check_row(std::string_view position, std::string_view value) {
  const std::uint64_t encoded_size = take_number(value);
  const std::uint64_t key_size = take_number(value);
  const std::uint64_t value_size = take_number(value);
  const std::string_view key = take_bytes(value, key_size);
  const std::string_view shown = take_bytes(value, value_size);
  if (!json::is_compact(key) || !json::is_compact(shown)) throw damaged();
  Reader reader(position);
  if (!reader.take_int()) throw damaged();
  std::string_view rest = reader.rest();
  if (encoded_size <= kMaxWholeKeyBytes) {
    take_bytes(rest, encoded_size);
  } else {
    std::string encoded(take_bytes(rest, kMaxWholeKeyBytes));
    encoded += take_bytes(value, encoded_size - kMaxWholeKeyBytes);
    if (take_bytes(rest, kKeyDigestBytes) != sha256(encoded, kKeyDigestBytes)) throw damaged();
  }
  if (!value.empty()) throw damaged();
  Reader id(rest);
  if (!id.take_string() || id.rest().size() != kRowNumberBytes) throw damaged();
}

std::int64_t count_rows(kv::Transaction& tx, const IndexKeys& keys, int view) {
  return kv::decode_counter(tx.get(count_key(keys, view), kv::Isolation::snapshot));
}

void add_to_count(kv::Transaction& tx, const IndexKeys& keys, int view, std::int64_t rows) {
  if (rows != 0) tx.add(count_key(keys, view), rows);
}

}  // namespace divan::index::views
