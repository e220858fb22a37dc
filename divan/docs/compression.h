// Compressed contents of attachments.
//
// Each chunk is compressed by itself, as blocks of DEFLATE (RFC 1951) that end at a byte and of which none is
// marked as the last. So a part of a content can be read without the chunks before it; and all chunks after
// one another, between start_gzip() and end_gzip(), are the content in gzip (RFC 1952), as responses with
// "Content-Encoding: gzip" have it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace divan::docs {

/// Higher levels of zlib make contents a few percent smaller, and take up to 30 times as long for some of
/// them.
inline constexpr int kMaxCompressionLevel = 6;
/// Of `[attachments] compressible_types`, as in CouchDB.
inline constexpr std::string_view kDefaultCompressibleTypes =
    "text/*, application/javascript, application/json, application/xml";

/// Which contents are compressed.
struct Compression {
  int level = 0;                     ///< of zlib, 1 to kMaxCompressionLevel; 0: none
  std::vector<std::string> types{};  ///< of contents, such as "text/*"; `*` stands for any text

  /// The level for contents of this type (a Content-Type, perhaps with parameters); 0: not compressed.
  int level_for(std::string_view content_type) const;
};

/// The compressed chunk, usually smaller, at most 64 bytes larger than `bytes` of at most kv::kChunkBytes.
/// `level` from 1 to kMaxCompressionLevel.
std::string deflate_chunk(std::string_view bytes, int level);

/// Uncompresses one chunk or several after one another. Throws an internal error if they are damaged, or have
/// more than `max_bytes` without compression.
std::string inflate_chunks(std::string_view chunks, std::size_t max_bytes);

/// The checksum of gzip, of what was added before (0 in the beginning) and `bytes`.
std::uint32_t add_crc32(std::uint32_t crc, std::string_view bytes);

/// What is before and after the chunks in gzip; `crc32` and `length` are those of the content.
std::string_view start_gzip();
std::string end_gzip(std::uint32_t crc32, std::uint64_t length);
inline constexpr std::size_t kGzipBytes = 10 + 2 + 8;  ///< of both

}  // namespace divan::docs
