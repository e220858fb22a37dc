#include "divan/kv/stamping.h"

#include <gtest/gtest.h>

namespace divan::kv {
namespace {

TEST(Stamping, AStampIsTheVersionAndThePosition) {
  EXPECT_EQ(versionstamp_bytes(0x0102030405060708, 0x090a), "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a");
}

TEST(Stamping, AStampReplacesTenBytesAtItsOffset) {
  EXPECT_EQ(stamped("ab##########c", 2, "0123456789"), "ab0123456789c");
}

TEST(Stamping, PossibleKeysReachFromBehindTheReadVersionToTheLastStamp) {
  const auto keys = possible_keys("a##########z", 1, 0x0102);
  const std::string seen("a\0\0\0\0\0\0\x01\x02\xff\xffz", 12), first("a\0\0\0\0\0\0\x01\x03\0\0z", 12),
      last = "a" + std::string(10, '\xff') + "z";
  EXPECT_EQ(keys.begin, first);
  EXPECT_FALSE(keys.contains(seen));
  EXPECT_TRUE(keys.contains(first));
  EXPECT_TRUE(keys.contains(last));
  EXPECT_FALSE(keys.contains(last + '\0'));
}

std::optional<std::uint32_t> offset_of(const std::string& bytes) {
  try {
    std::string_view rest = bytes;
    const auto offset = take_stamp_offset(rest);
    EXPECT_EQ(rest, bytes.substr(0, bytes.size() - 4));
    return offset;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::client_invalid_operation);
    return std::nullopt;
  }
}

TEST(Stamping, TheOffsetIsTakenOffTheEndIfAStampFitsThere) {
  const std::string twelve(12, '#');
  EXPECT_EQ(offset_of(twelve + std::string("\x02\0\0\0", 4)), 2u);
  EXPECT_EQ(offset_of(twelve + std::string("\x03\0\0\0", 4)), std::nullopt);
  EXPECT_EQ(offset_of(twelve + std::string("\0\0\x01\0", 4)), std::nullopt);
  EXPECT_EQ(offset_of(twelve + "\xff\xff\xff\xff"), std::nullopt);
  EXPECT_EQ(offset_of("\x01\x02"), std::nullopt);
}

}  // namespace
}  // namespace divan::kv
