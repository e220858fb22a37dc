#include "divan/backup/format.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::backup {
namespace {

constexpr std::string_view kMagic = "DIVANBAK";
constexpr std::size_t kHeadBytes = 12;  // the magic, and the format in 4 bytes
constexpr char kHeaderBlock = 'H';
constexpr char kRowsBlock = 'R';
constexpr char kEndBlock = 'E';
constexpr std::size_t kFrameBytes = 1 + 4 + 8;  // type, size, checksum
// A block of rows ends after the row that makes it at least this large.
constexpr std::size_t kFullBytes = 64 << 10;
// The most bytes that a reader buffers: any header, or a full block and the largest row.
constexpr std::size_t kMaxPayloadBytes = 256 << 10;
static_assert(kFullBytes + kv::kMaxKeyBytes + kv::kMaxValueBytes + 64 < kMaxPayloadBytes);

Error bad_backup(std::string reason) { return {400, "bad_backup", std::move(reason)}; }
Error damaged(std::string_view what) { return bad_backup(fmt::format("The backup is damaged: {}.", what)); }

std::uint64_t checksum_of(std::string_view bytes, std::uint64_t seed) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

std::uint64_t take_number(std::string_view& bytes) {
  const auto number = take_varint(bytes);
  if (!number) throw damaged("a block has malformed contents");
  return *number;
}

std::string_view take_bytes(std::string_view& bytes) {
  const std::uint64_t size = take_number(bytes);
  if (size > bytes.size()) throw damaged("a row exceeds its block");
  const auto taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

std::string head() {
  std::string bytes(kMagic);
  append_u32(bytes, kFormat);
  return bytes;
}

std::string header_json(const Header& header) {
  std::string json;
  json::Writer writer(json);
  writer.begin_object()
      .key("divan")
      .string(header.divan_version)
      .key("uuid")
      .string(header.server_uuid)
      .key("created")
      .number(header.created_ms);
  if (header.shared) writer.key("shared").boolean(true);
  writer.end_object();
  return json;
}

}  // namespace

Writer::Writer(const Header& header, ByteSink sink) : sink_(std::move(sink)) {
  const std::string begin = head();
  checksum_ = checksum_of(begin, 0);
  wants_more_ = sink_(begin);
  write_block(kHeaderBlock, header_json(header));
}

void Writer::write_block(char type, std::string_view payload) {
  if (!wants_more_) return;
  block_.assign(1, type);
  append_u32(block_, static_cast<std::uint32_t>(payload.size()));
  checksum_ = checksum_of(payload, checksum_of(block_, checksum_));
  append_u64(block_, checksum_);
  block_ += payload;
  wants_more_ = sink_(block_);
}

bool Writer::add(std::string_view key, std::string_view value) {
  // The parser rejects rows that are not in order.
  DIVAN_CHECK(payload_.empty() || key > last_key_, "row {} of a backup is not greater than the previous one",
              rows_);
  const auto differs = std::mismatch(key.begin(), key.end(), last_key_.begin(), last_key_.end());
  const auto shared = static_cast<std::size_t>(differs.first - key.begin());
  append_varint(payload_, shared);
  append_varint(payload_, key.size() - shared);
  payload_ += key.substr(shared);
  append_varint(payload_, value.size());
  payload_ += value;
  last_key_ = key;
  ++rows_;
  if (payload_.size() >= kFullBytes) flush_rows();
  return wants_more_;
}

void Writer::flush_rows() {
  if (payload_.empty()) return;
  write_block(kRowsBlock, payload_);
  payload_.clear();
  last_key_.clear();
}

bool Writer::finish(kv::Version version) {
  DIVAN_CHECK(version >= 0, "a backup of version {}", version);
  flush_rows();
  std::string end;
  append_varint(end, rows_);
  append_varint(end, static_cast<std::uint64_t>(version));
  write_block(kEndBlock, end);
  return wants_more_;
}

void Parser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    // Complete blocks are parsed in place; only an incomplete block is buffered.
    if (pending_.empty()) {
      const std::size_t used = next_block(bytes);
      if (used == 0) pending_ = bytes;
      DIVAN_CHECK(used <= bytes.size(), "{} bytes were read of {}", used, bytes.size());
      bytes.remove_prefix(used == 0 ? bytes.size() : used);
      continue;
    }
    const std::size_t before = pending_.size();
    pending_ += bytes.substr(0, kMaxPayloadBytes + kFrameBytes);
    const std::size_t used = next_block(pending_);
    if (used == 0) {
      // Even the largest block would be complete, so all of `bytes` was appended.
      bytes.remove_prefix(pending_.size() - before);
      continue;
    }
    DIVAN_CHECK(used > before && used <= pending_.size(), "{} bytes were read of {}, {} of them before", used,
                pending_.size(), before);
    bytes.remove_prefix(used - before);
    pending_.clear();
  }
}

// Parses the head or block at the beginning of `bytes` and returns its size; 0 if it is incomplete.
std::size_t Parser::next_block(std::string_view bytes) {
  if (expected_ == Expected::head) {
    check_head(bytes.substr(0, kHeadBytes));
    return bytes.size() < kHeadBytes ? 0 : kHeadBytes;
  }
  if (expected_ == Expected::nothing) throw damaged("there is data after its end");
  if (bytes.size() < kFrameBytes) return 0;
  const std::size_t size = read_u32(bytes.substr(1));
  if (size > kMaxPayloadBytes) throw damaged(fmt::format("block {} is too large", blocks_));
  if (bytes.size() < kFrameBytes + size) return 0;
  const auto payload = bytes.substr(kFrameBytes, size);
  const std::uint64_t sum = checksum_of(payload, checksum_of(bytes.substr(0, 5), checksum_));
  if (sum != read_u64(bytes.substr(5)))
    throw damaged(fmt::format("the checksum of block {} is wrong", blocks_));
  checksum_ = sum;
  read_block(bytes[0], payload);
  ++blocks_;
  return kFrameBytes + size;
}

void Parser::check_head(std::string_view bytes) {
  const std::size_t given = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, given) != kMagic.substr(0, given))
    throw bad_backup("The file is not a backup of Divan.");
  if (bytes.size() < kHeadBytes) return;
  const std::uint32_t format = read_u32(bytes.substr(kMagic.size()));
  if (format < kOldestFormat || format > kFormat) {
    throw bad_backup(
        fmt::format("Unsupported backup format {}; expected {} to {}.", format, kOldestFormat, kFormat));
  }
  checksum_ = checksum_of(bytes, 0);
  expected_ = Expected::header;
}

void Parser::read_block(char type, std::string_view payload) {
  if (expected_ == Expected::header && type == kHeaderBlock) {
    expected_ = Expected::rows;
    read_header(payload);
  } else if (expected_ == Expected::rows && type == kRowsBlock) {
    read_rows(payload);
  } else if (expected_ == Expected::rows && type == kEndBlock) {
    expected_ = Expected::nothing;
    read_end(payload);
  } else {
    throw damaged(fmt::format("block {} has an unexpected type", blocks_));
  }
}

void Parser::read_header(std::string_view payload) {
  Header header;
  try {
    const auto object = json::parse_object(payload);
    header.divan_version = object.at("divan").as_string();
    header.server_uuid = object.at("uuid").as_string();
    header.created_ms = object.at("created").as_int64();
    if (const auto* shared = object.if_contains("shared")) header.shared = shared->as_bool();
  } catch (const std::exception&) { throw damaged("its header is malformed"); }
  if (on_header_) on_header_(header);
}

void Parser::read_rows(std::string_view payload) {
  std::string last;  // the first key of a block has no shared prefix
  while (!payload.empty()) {
    const std::uint64_t shared = take_number(payload);
    if (shared > last.size()) throw damaged("a key's shared prefix exceeds the previous key");
    last.resize(shared);
    last += take_bytes(payload);
    const std::string_view value = take_bytes(payload);
    if (last.size() > kv::kMaxKeyBytes || value.size() > kv::kMaxValueBytes)
      throw damaged("a row exceeds the store's limits");
    if (last <= key_ && rows_ > 0) throw damaged("its rows are not in order");
    key_ = last;
    ++rows_;
    on_row_(key_, value);
  }
}

void Parser::read_end(std::string_view payload) {
  end_.rows = take_number(payload);
  const std::uint64_t version = take_number(payload);
  if (!payload.empty() || version > static_cast<std::uint64_t>(kMaxVersion))
    throw damaged("its end is malformed");
  end_.version = static_cast<kv::Version>(version);
  if (end_.rows != rows_) throw damaged(fmt::format("it has {} rows, not {}", rows_, end_.rows));
}

Parser::End Parser::end() const {
  if (expected_ != Expected::nothing) {
    throw bad_backup(fmt::format("The backup is truncated after {} rows.", rows_));
  }
  return end_;
}

}  // namespace divan::backup
