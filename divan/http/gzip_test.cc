#include "divan/http/gzip.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "divan/base/error.h"

namespace divan::http {
namespace {

std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

int status_of(std::string_view compressed, std::size_t max_bytes = 1000) {
  try {
    gunzip(compressed, max_bytes);
  } catch (const Error& error) { return error.status(); }
  return 200;
}

TEST(Gzip, RoundTrip) {
  const std::string large(3'000'000, 'x');
  for (const std::string& text : {std::string(), std::string("{\"a\":1}"), large})
    EXPECT_EQ(gunzip(gzip(text), large.size()), text);
  EXPECT_EQ(gunzip(gzip("one ") + gzip("two"), 7), "one two");
  EXPECT_EQ(gunzip("", 0), "");
}

TEST(Gzip, RejectsMalformedInput) {
  const std::string good = gzip("some text that is long enough to have a body");
  for (std::size_t size = 1; size < good.size(); ++size)
    EXPECT_EQ(status_of(good.substr(0, size)), 400) << size;
  std::string wrong_sum = good;
  wrong_sum[good.size() - 6] ^= 1;
  EXPECT_EQ(status_of(wrong_sum), 400);
  EXPECT_EQ(status_of(good + "x"), 400);
  EXPECT_EQ(status_of("{\"a\":1}"), 400);
}

TEST(Gzip, StopsAtTheLimit) {
  EXPECT_EQ(status_of(gzip(std::string(1000, 'x'))), 200);
  EXPECT_EQ(status_of(gzip(std::string(1001, 'x'))), 413);
  // The rest is corrupt, and is not read.
  std::string text;
  text.resize(100'000'000, 'x');
  std::string bomb = gzip(text);
  bomb.back() ^= 1;
  EXPECT_EQ(status_of(bomb), 413);
  EXPECT_EQ(status_of(gzip(std::string(600, 'x')) + gzip(std::string(600, 'y'))), 413);
}

}  // namespace
}  // namespace divan::http
