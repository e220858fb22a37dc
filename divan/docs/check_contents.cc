#include "divan/docs/check_contents.h"

#include "divan/base/error.h"
#include "divan/kv/tuple_packer.h"

namespace divan::docs {

std::string content_digest(std::string_view md5, const Content& content) {
  std::string digest;
  kv::tuple::Packer(digest).bytes(md5);
  return digest + encode_content(content);
}

void ContentChunks::add(std::string_view rest, std::string_view value) {
  const bool is_deflated = row_ == ContentRow::deflated_chunk;
  if (rest.empty() && !is_deflated) {
    is_upload_ = true;
    if (!value.empty()) throw internal_error("the marker of an upload is damaged");
    return;
  }
  kv::tuple::Reader reader(rest);
  const auto number = reader.take_int();
  const bool is_next = number == chunks_ && last_bytes_ == kv::kChunkBytes;
  is_damaged_ = true;
  std::string inflated;
  if (is_deflated) inflated = inflate_chunks(value, kv::kChunkBytes);
  const std::string_view bytes = is_deflated ? inflated : value;
  if (!number || !reader.at_end() || !is_next || bytes.empty() || bytes.size() > kv::kChunkBytes)
    throw internal_error("the previous chunk is missing or incomplete, or this is no chunk");
  is_damaged_ = false;
  ++chunks_;
  last_bytes_ = bytes.size();
  bytes_ += bytes.size();
  deflated_.length += value.size();
  deflated_.crc32 = add_crc32(deflated_.crc32, bytes);
  md5_.add(bytes);
  sha256_.add(bytes);
}

std::optional<std::string> ContentChunks::digest() const {
  if (is_upload_ || is_damaged_) return std::nullopt;
  Content content{.id = id_, .length = bytes_, .sha256 = sha256_.value()};
  if (row_ == ContentRow::deflated_chunk) content.deflated = deflated_;
  return content_digest(md5_.value(), content);
}

}  // namespace divan::docs
