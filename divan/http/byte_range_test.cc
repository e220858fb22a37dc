#include "divan/http/byte_range.h"

#include <gmock/gmock.h>

#include "divan/base/error.h"

namespace divan::http {
namespace {

std::string range_of(std::string_view field, std::uint64_t length) {
  try {
    const auto range = parse_range(field, length);
    return range ? std::to_string(range->first) + " to " + std::to_string(range->end) : "all";
  } catch (const Error& error) { return std::to_string(error.status()); }
}

TEST(ByteRange, IsWithinTheRepresentation) {
  EXPECT_EQ(range_of("bytes=0-0", 10), "0 to 1");
  EXPECT_EQ(range_of("Bytes=2-5", 10), "2 to 6");
  EXPECT_EQ(range_of("bytes=2-", 10), "2 to 10");
  EXPECT_EQ(range_of("bytes=-3", 10), "7 to 10");
  EXPECT_EQ(range_of("bytes=-30", 10), "0 to 10");
  EXPECT_EQ(range_of("bytes=9-100", 10), "9 to 10");
  EXPECT_EQ(range_of("bytes=9-18446744073709551615", 10), "9 to 10");
  EXPECT_EQ(range_of("bytes=0-99999999999999999999999", 10), "0 to 10");
}

TEST(ByteRange, WithoutBytesIsRefused) {
  for (const char* field : {"bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"})
    EXPECT_EQ(range_of(field, 10), "416") << field;
  EXPECT_EQ(range_of("bytes=0-", 0), "416");
}

TEST(ByteRange, IsIgnoredIfItIsMalformedOrUnknown) {
  for (const char* field : {"", "bytes", "bytes=", "bytes=-", "bytes=5", "bytes=5-2", "bytes=a-", "bytes=1-b",
                            "bytes=1-2,4-5", "bytes= 1-2", "bytes=+1-2", "bytes=1--2", "items=0-1"})
    EXPECT_EQ(range_of(field, 10), "all") << field;
}

}  // namespace
}  // namespace divan::http
