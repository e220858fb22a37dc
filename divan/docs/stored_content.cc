#include "divan/docs/stored_content.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/docs/compression.h"
#include "divan/docs/keys.h"
#include "divan/kv/tuple_packer.h"

namespace divan::docs {
namespace {

constexpr std::size_t kSha256Bytes = 32;

}  // namespace

Content decode_content(std::string_view value) {
  const auto check = [](bool is_valid) {
    if (!is_valid) throw internal_error("The row of an attachment's content is damaged.");
  };
  kv::tuple::Reader reader(value);
  auto id = reader.take_bytes();
  const auto length = reader.take_int();
  auto sha256 = reader.take_bytes();
  check(id && length && *length >= 0 && sha256 && sha256->size() == kSha256Bytes);
  Content content{*std::move(id), static_cast<std::uint64_t>(*length), *std::move(sha256)};
  if (reader.at_end()) return content;
  const auto deflated = reader.take_int(), crc32 = reader.take_int();
  check(deflated && *deflated > 0 && crc32 && *crc32 >= 0 && *crc32 <= UINT32_MAX && reader.at_end());
  content.deflated = {static_cast<std::uint64_t>(*deflated), static_cast<std::uint32_t>(*crc32)};
  return content;
}

std::string encode_content(const Content& content) {
  std::string value;
  kv::tuple::Packer packer(value);
  packer.bytes(content.id).integer(static_cast<std::int64_t>(content.length)).bytes(content.sha256);
  if (const auto& deflated = content.deflated)
    packer.integer(static_cast<std::int64_t>(deflated->length)).integer(deflated->crc32);
  return value;
}

EncodedChunks::EncodedChunks(std::string_view bytes, int level, bool only_if_smaller)
    : bytes_(bytes), stored_bytes_(bytes.size()) {
  if (level == 0 || bytes.empty()) return;
  std::uint64_t deflated_bytes = 0;
  kv::for_each_chunk(bytes, [&](std::uint32_t, std::string_view piece) {
    deflated_bytes += deflated_.emplace_back(deflate_chunk(piece, level)).size();
  });
  if (only_if_smaller && deflated_bytes >= bytes.size()) {
    deflated_.clear();
  } else {
    stored_bytes_ = deflated_bytes;
  }
}

void compress(IncomingAttachment& attachment, int level) {
  EncodedChunks chunks(attachment.data, level, true);
  if (!chunks.is_deflated()) return;
  attachment.crc32 = add_crc32(0, attachment.data);
  attachment.deflated = chunks.take_deflated();
  attachment.data = {};
}

Content read_content(kv::Transaction& tx, const Database& database, std::string_view md5,
                     kv::Isolation isolation) {
  const auto row = tx.get(database.keys().content(md5), isolation);
  if (!row) throw internal_error("The content of an attachment is missing in the store.");
  return decode_content(*row);
}

std::string read_stored_chunks(kv::Transaction& tx, const Database& database, const Content& content,
                               std::uint32_t first, std::uint32_t count) {
  auto bytes = kv::read_chunks(tx, count, [&](std::uint32_t chunk) {
    return database.keys().content_chunk(content.row(), content.id, first + chunk);
  });
  if (!bytes) throw internal_error("A part of an attachment's content is missing in the store.");
  return *std::move(bytes);
}

std::string read_content_chunks(kv::Transaction& tx, const Database& database, const Content& content,
                                std::uint32_t first, std::uint32_t count) {
  std::string stored = read_stored_chunks(tx, database, content, first, count);
  if (!content.deflated) return stored;
  const std::uint64_t begin = std::uint64_t{first} * kv::kChunkBytes;
  const std::uint64_t most = std::uint64_t{count} * kv::kChunkBytes;
  const std::uint64_t length = std::min(content.length - std::min(content.length, begin), most);
  std::string bytes = inflate_chunks(stored, length);
  if (bytes.size() != length) throw internal_error("A part of an attachment's content is damaged.");
  return bytes;
}

}  // namespace divan::docs
