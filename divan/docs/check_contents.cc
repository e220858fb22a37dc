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
  if (rest.empty()) {
    is_upload_ = true;
    if (!value.empty()) throw internal_error("the marker of an upload is damaged");
    return;
  }
  kv::tuple::Reader reader(rest);
  const auto number = reader.take_int();
  const bool is_next = number == chunks_ && last_bytes_ == kv::kChunkBytes;
  if (!number || !reader.at_end() || !is_next || value.empty() || value.size() > kv::kChunkBytes) {
    is_damaged_ = true;
    throw internal_error("the previous chunk is missing or incomplete, or this is no chunk");
  }
  ++chunks_;
  last_bytes_ = value.size();
  bytes_ += value.size();
  md5_.add(value);
  sha256_.add(value);
}

std::optional<std::string> ContentChunks::digest() const {
  if (is_upload_ || is_damaged_) return std::nullopt;
  return content_digest(md5_.value(), {id_, bytes_, sha256_.value()});
}

}  // namespace divan::docs
