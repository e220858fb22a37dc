// The rows of a content of attachments: its description and its chunks, which may be compressed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/docs/attachment.h"
#include "divan/docs/catalog.h"
#include "divan/kv/chunks.h"

namespace divan::docs {

/// A content of a database.
struct Content {
  /// What is stored of a compressed content.
  struct Deflated {
    std::uint64_t length = 0;  ///< of all chunks
    std::uint32_t crc32 = 0;   ///< of the content
  };

  std::string id;  ///< of its chunks
  std::uint64_t length = 0;
  std::string sha256;
  std::optional<Deflated> deflated{};

  ContentRow row() const { return deflated ? ContentRow::deflated_chunk : ContentRow::chunk; }
};

/// Consecutive chunks of a content in the form in which they are stored.
class EncodedChunks {
 public:
  /// Compresses `bytes`, which must exist as long as this. `level` as of Compression::level_for(). With
  /// `only_if_smaller`, chunks that would not become smaller together stay as they are.
  EncodedChunks(std::string_view bytes, int level, bool only_if_smaller);

  std::string_view bytes() const { return bytes_; }
  bool is_deflated() const { return !deflated_.empty(); }
  /// The bytes of all chunks as they are stored.
  std::uint64_t stored_bytes() const { return stored_bytes_; }

  /// The compressed chunks, which this does not have any more.
  std::vector<std::string> take_deflated() { return std::exchange(deflated_, {}); }

  /// Calls `write(chunk number, piece)` for each chunk, from 0 on.
  template <class Write>
  void for_each(Write&& write) const {
    if (!is_deflated()) return kv::for_each_chunk(bytes_, write);
    for (std::uint32_t i = 0; i < deflated_.size(); ++i) write(i, std::string_view(deflated_[i]));
  }

 private:
  std::string_view bytes_;
  std::vector<std::string> deflated_;
  std::uint64_t stored_bytes_;
};

/// Compresses the data of an attachment, unless that does not make it smaller. Takes up to 100 ms per
/// megabyte.
void compress(IncomingAttachment& attachment, int level);

/// Decodes the row of a content; throws an internal error if it is damaged.
Content decode_content(std::string_view value);

std::string encode_content(const Content& content);

/// Throws an internal error if there is none.
Content read_content(kv::Transaction& tx, const Database& database, std::string_view md5,
                     kv::Isolation isolation = kv::Isolation::snapshot);
/// A part of a content: chunks from `first` on, each of kv::kChunkBytes. Throws an internal error if one is
/// missing, since the content was removed or is damaged.
std::string read_content_chunks(kv::Transaction& tx, const Database& database, const Content& content,
                                std::uint32_t first, std::uint32_t count);
/// The same as it is stored.
std::string read_stored_chunks(kv::Transaction& tx, const Database& database, const Content& content,
                               std::uint32_t first, std::uint32_t count);

}  // namespace divan::docs
