#include "divan/docs/compression.h"

#include <gmock/gmock.h>

#include "divan/base/error.h"
#include "divan/base/rng.h"
#include "divan/kv/chunks.h"

namespace divan::docs {
namespace {

TEST(Compression, AppliesToTheListedTypes) {
  const Compression compression{6, {"text/*", "Application/JSON", "x/y", "a/*+*z"}};
  for (const char* type :
       {"text/plain", "TEXT/html; charset=utf-8", "application/json", " x/y ", "text/", "a/+z", "a/b+c+xyz"})
    EXPECT_EQ(compression.level_for(type), 6) << type;
  for (const char* type : {"", "text", "textx/plain", "application/jsonp", "x/yz", "image/png", "text;/x",
                           "a/z", "a/b+zx", "xa/b+z"})
    EXPECT_EQ(compression.level_for(type), 0) << type;
  EXPECT_EQ((Compression{1, {"*"}}).level_for("image/png"), 1);
  EXPECT_EQ((Compression{1, {"*a*a"}}).level_for("a"), 0) << "pieces do not overlap";
  EXPECT_EQ((Compression{0, compression.types}).level_for("text/plain"), 0);
}

TEST(Compression, ChunksAreIndependent) {
  SeededRng rng(1);
  std::string text, noise;
  while (text.size() < kv::kChunkBytes) text += "all work and no play ";
  while (noise.size() < kv::kChunkBytes) noise += static_cast<char>(rng.next());
  text.resize(kv::kChunkBytes);
  for (int level = 1; level <= kMaxCompressionLevel; ++level) {
    const std::string first = deflate_chunk(text, level), second = deflate_chunk(noise, level);
    EXPECT_LT(first.size(), 2000u);
    EXPECT_LE(second.size(), noise.size() + 64);
    EXPECT_EQ(inflate_chunks(first, kv::kChunkBytes), text);
    EXPECT_EQ(inflate_chunks(second, kv::kChunkBytes), noise);
    EXPECT_EQ(inflate_chunks(first + second + first, 3 * kv::kChunkBytes), text + noise + text);
  }
  EXPECT_EQ(inflate_chunks(deflate_chunk("", 6), 0), "");
}

TEST(Compression, DamagedChunksAreReported) {
  const std::string chunk = deflate_chunk("hello hello hello hello", 6);
  const auto damaged = [](std::string_view bytes, std::size_t max_bytes) {
    try {
      inflate_chunks(bytes, max_bytes);
      return false;
    } catch (const Error& error) { return error.status() == 500; }
  };
  EXPECT_FALSE(damaged(chunk, 23));
  EXPECT_TRUE(damaged(chunk, 22));
  EXPECT_TRUE(damaged("\xff" + chunk, 1000));
  EXPECT_TRUE(damaged(chunk + "\x03" + std::string(1, '\0') + "more", 1000)) << "after a last block";
}

}  // namespace
}  // namespace divan::docs
