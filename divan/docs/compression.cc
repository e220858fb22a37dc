#include "divan/docs/compression.h"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"

namespace divan::docs {
namespace {

constexpr int kRawDeflate = -MAX_WBITS;  // without a header
constexpr int kDefaultMemLevel = 8;      // of zlib

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

// `*` in the pattern stands for any text.
bool matches(std::string_view text, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  // Each further piece where it is first found; the last one at the end.
  for (auto next = pattern.find('*'); next != std::string_view::npos; next = pattern.find('*')) {
    const auto found = text.find(pattern.substr(0, next));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + next);
    pattern.remove_prefix(next + 1);
  }
  return text.ends_with(pattern);
}

Bytef* input(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }

void append_little_endian(std::string& out, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift & 0xff);
}

}  // namespace

int Compression::level_for(std::string_view content_type) const {
  if (level == 0) return 0;
  content_type.remove_prefix(std::min(content_type.find_first_not_of(" \t"), content_type.size()));
  const std::string type = lower_case(content_type.substr(0, content_type.find_first_of("; \t")));
  const auto is_match = [&](std::string_view pattern) { return matches(type, lower_case(pattern)); };
  return std::ranges::any_of(types, is_match) ? level : 0;
}

std::string deflate_chunk(std::string_view bytes, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kRawDeflate, kDefaultMemLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  // deflateBound() is for Z_FINISH; the flush adds an empty block.
  std::string out(deflateBound(&stream, bytes.size()) + 16, '\0');
  stream.next_in = input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_SYNC_FLUSH);
  const bool is_complete = result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0;
  const std::size_t left = stream.avail_out;
  deflateEnd(&stream);
  DIVAN_CHECK(is_complete, "zlib did not compress {} bytes: {}", bytes.size(), result);
  out.resize(out.size() - left);
  return out;
}

std::string inflate_chunks(std::string_view chunks, std::size_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kRawDeflate) != Z_OK) throw std::bad_alloc();
  std::string out(max_bytes + 1, '\0');  // more would be seen
  stream.next_in = input(chunks);
  stream.avail_in = static_cast<uInt>(chunks.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_SYNC_FLUSH);
  const bool is_complete = (result == Z_OK || result == Z_BUF_ERROR) && stream.avail_in == 0;
  const std::size_t left = stream.avail_out;
  inflateEnd(&stream);
  if (!is_complete || left == 0) throw internal_error("The compressed content of an attachment is damaged.");
  out.resize(out.size() - left);
  return out;
}

std::uint32_t add_crc32(std::uint32_t crc, std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(crc, input(bytes), bytes.size()));
}

std::string_view start_gzip() {
  // The magic, DEFLATE, no flags, no time, no extra flags, and the system "unknown".
  using namespace std::string_view_literals;
  return "\x1f\x8b\x08\0\0\0\0\0\0\xff"sv;
}

std::string end_gzip(std::uint32_t crc32, std::uint64_t length) {
  using namespace std::string_literals;
  std::string end = "\x03\0"s;  // an empty last block
  append_little_endian(end, crc32);
  append_little_endian(end, static_cast<std::uint32_t>(length));
  return end;
}

}  // namespace divan::docs
