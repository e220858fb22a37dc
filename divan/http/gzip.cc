#include "divan/http/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "divan/base/check.h"
#include "divan/base/error.h"

namespace divan::http {
namespace {

class Inflater {
 public:
  Inflater() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

Error malformed(const char* why) {
  return bad_request(
      fmt::format("The body is not valid gzip, though its Content-Encoding is gzip: {}.", why));
}

}  // namespace

std::string gunzip(std::string_view compressed, std::size_t max_bytes) {
  std::string out;
  std::array<char, 64 << 10> piece;
  while (!compressed.empty()) {
    Inflater inflater;
    z_stream& stream = inflater.stream;
    int result = Z_OK;
    while (result != Z_STREAM_END) {
      const auto given = std::min<std::size_t>(compressed.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
      stream.avail_in = static_cast<uInt>(given);
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      result = inflate(&stream, Z_NO_FLUSH);
      if (result == Z_BUF_ERROR) throw malformed("it is truncated");
      if (result != Z_OK && result != Z_STREAM_END)
        throw malformed(stream.msg != nullptr ? stream.msg : "its data is corrupt");
      DIVAN_CHECK(stream.avail_in <= given && stream.avail_out <= piece.size(),
                  "zlib has written beyond its buffer");
      compressed.remove_prefix(given - stream.avail_in);
      const std::size_t size = piece.size() - stream.avail_out;
      DIVAN_CHECK(out.size() <= max_bytes, "{} bytes of at most {}", out.size(), max_bytes);
      if (size > max_bytes - out.size())
        throw Error(413, "too_large",
                    fmt::format("The request entity is too large: uncompressed it has more than {} bytes.",
                                max_bytes));
      out.append(piece.data(), size);
    }
  }
  return out;
}

}  // namespace divan::http
