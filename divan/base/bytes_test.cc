#include "divan/base/bytes.h"

#include <gtest/gtest.h>

namespace divan {
namespace {

TEST(Bytes, HexRoundTrip) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x7f\xff", 3)), "007fff");
  EXPECT_EQ(from_hex("007FfF"), std::string("\x00\x7f\xff", 3));
  EXPECT_FALSE(from_hex("0"));
  EXPECT_FALSE(from_hex("0g"));
}

TEST(Bytes, Base64RoundTrip) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd"}) EXPECT_EQ(from_base64(to_base64(text)), text);
  EXPECT_EQ(to_base64("admin:secret"), "YWRtaW46c2VjcmV0");
  EXPECT_FALSE(from_base64("a"));
  EXPECT_FALSE(from_base64("a===b"));
  EXPECT_FALSE(from_base64("!!!!"));
  for (const auto* text : {"YWI=YWJj", "=AAA", "A=AA", "A===", "====", "YWI=\n", " YWI", "YWJj    "}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(Bytes, BigEndianOrderIsNumericOrder) {
  std::string small, large;
  append_u64(small, 255);
  append_u64(large, 256);
  EXPECT_LT(small, large);
  EXPECT_EQ(read_u64(large), 256u);
}

TEST(Bytes, Utf8PrefixCutsBetweenCharacters) {
  EXPECT_EQ(utf8_prefix("ab", 5), "ab");
  EXPECT_EQ(utf8_prefix("a\xc3\xbc", 2), "a");
  EXPECT_EQ(utf8_prefix("a\xc3\xbc"
                        "b",
                        3),
            "a\xc3\xbc");
}

TEST(Bytes, VarintRoundTripAndLimits) {
  for (const std::uint64_t value : {0ull, 127ull, 128ull, 300ull, ~0ull}) {
    std::string bytes;
    append_varint(bytes, value);
    std::string_view rest = bytes;
    EXPECT_EQ(take_varint(rest), value);
    EXPECT_TRUE(rest.empty());
  }
  std::string_view cut("\x80", 1);
  EXPECT_FALSE(take_varint(cut));
  std::string_view too_large("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
  EXPECT_FALSE(take_varint(too_large));
}

}  // namespace
}  // namespace divan
