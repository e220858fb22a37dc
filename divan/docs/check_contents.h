// Checks the contents of attachments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "divan/base/digest.h"
#include "divan/docs/contents.h"
#include "divan/kv/chunks.h"

namespace divan::docs {

/// Identifies a content with its MD5.
std::string content_digest(std::string_view md5, const Content& content);

/// The chunks of a content, in their order, or of an upload. Not thread-safe.
class ContentChunks {
 public:
  /// `row` and `id` are the parts that their keys have in common.
  ContentChunks(ContentRow row, std::string id) : row_(row), id_(std::move(id)) {}

  ContentRow row() const { return row_; }
  const std::string& id() const { return id_; }

  /// Adds a row; `rest` is the part of its key after the id. Throws an internal error if it is damaged.
  void add(std::string_view rest, std::string_view value);

  bool is_upload() const { return is_upload_; }
  /// The digest of the content; nullopt if it is an upload, or has been found to be damaged.
  std::optional<std::string> digest() const;

 private:
  const ContentRow row_;
  const std::string id_;
  std::int64_t chunks_ = 0;
  std::size_t last_bytes_ = kv::kChunkBytes;
  std::uint64_t bytes_ = 0;
  Content::Deflated deflated_{};
  bool is_upload_ = false;
  bool is_damaged_ = false;
  Digest md5_{Digest::Algorithm::md5};
  Digest sha256_{Digest::Algorithm::sha256};
};

}  // namespace divan::docs
