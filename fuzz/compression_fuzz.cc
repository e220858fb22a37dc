// Compressed contents: the first byte says whether the others are stored chunks, which are damaged or expand
// to at most the limit, or a content that is compressed and uncompressed again, by us and as gzip.
#include "divan/docs/compression.h"
#include "divan/http/gzip.h"
#include "fuzz/check.h"

namespace docs = divan::docs;
using divan::fuzz::check;

namespace {

constexpr std::size_t kLimit = 10'000;

void read_damaged(std::string_view chunks) {
  try {
    check(docs::inflate_chunks(chunks, kLimit).size() <= kLimit);
  } catch (const divan::Error& error) { check(error.status() == 500); }
}

void read_compressed(std::string_view content, int level) {
  std::string chunks;
  for (const auto piece : {content.substr(0, content.size() / 2), content.substr(content.size() / 2)}) {
    const std::string chunk = docs::deflate_chunk(piece, level);
    check(chunk.size() <= piece.size() + 64 && docs::inflate_chunks(chunk, piece.size()) == piece);
    chunks += chunk;
  }
  check(docs::inflate_chunks(chunks, content.size()) == content);
  const auto crc32 = docs::add_crc32(0, content);
  const std::string gzip = std::string(docs::start_gzip()) + chunks + docs::end_gzip(crc32, content.size());
  check(gzip.size() == chunks.size() + docs::kGzipBytes);
  check(divan::http::gunzip(gzip, content.size()) == content);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest = divan::fuzz::text_of(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    read_damaged(rest);
  } else {
    read_compressed(rest, 1 + data[0] % docs::kMaxCompressionLevel);
  }
  return 0;
}
