#include "divan/kv/tuple_packer.h"

#include <gtest/gtest.h>

#include <limits>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/kv/tuple.h"

namespace divan::kv::tuple {
namespace {

using namespace std::string_literals;
using divan::Error;  // not kv::Error

const Versionstamp kStamp = Versionstamp::complete("0123456789", 513);
const Uuid kUuid{{1, 2, 3}};

std::string packed_everything() {
  std::string key = "prefix";
  Packer(key)
      .string("jobs\0"s)
      .bytes("\0\xff"s)
      .integer(5)
      .integer(std::numeric_limits<std::uint64_t>::max())
      .null()
      .begin_nested()
      .null()
      .begin_nested()
      .end_nested()
      .integer(std::int8_t{-3})
      .end_nested()
      .float32(1.5f)
      .float64(-2.5)
      .boolean(true)
      .uuid(kUuid)
      .versionstamp(kStamp)
      .big_integer({false, "123456789"});
  return key;
}

TEST(Packer, appends_what_packing_a_tuple_gives) {
  const Tuple tuple{String{"jobs\0"s},
                    Bytes{"\0\xff"s},
                    5,
                    std::numeric_limits<std::uint64_t>::max(),
                    Null(),
                    Tuple{Null(), Tuple(), -3},
                    1.5f,
                    -2.5,
                    true,
                    kUuid,
                    kStamp,
                    BigInteger{false, "123456789"}};
  EXPECT_EQ(packed_everything(), "prefix" + pack(tuple));
}

TEST(Reader, takes_back_what_was_packed) {
  const std::string key = packed_everything();
  Reader reader(std::string_view(key).substr(6));
  EXPECT_EQ(reader.take_string(), "jobs\0"s);
  EXPECT_EQ(reader.take_bytes(), "\0\xff"s);
  EXPECT_EQ(reader.take_int(), 5);
  EXPECT_EQ(reader.take_uint(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(reader.take_null());
  EXPECT_TRUE(reader.begin_nested());
  EXPECT_FALSE(reader.end_nested());
  EXPECT_TRUE(reader.take_null());
  EXPECT_TRUE(reader.begin_nested());
  EXPECT_FALSE(reader.take_null());
  EXPECT_TRUE(reader.end_nested());
  EXPECT_EQ(reader.take_int(), -3);
  EXPECT_TRUE(reader.end_nested());
  EXPECT_EQ(reader.take_float32(), 1.5f);
  EXPECT_EQ(reader.take_float64(), -2.5);
  EXPECT_EQ(reader.take_bool(), true);
  EXPECT_EQ(reader.take_uuid(), kUuid);
  EXPECT_EQ(reader.take_versionstamp(), kStamp);
  EXPECT_FALSE(reader.at_end());
  EXPECT_EQ(reader.take_big_integer(), (BigInteger{false, "123456789"}));
  EXPECT_TRUE(reader.at_end());
}

TEST(Reader, stays_where_it_is_when_something_else_comes) {
  std::string key;
  Packer(key).string("a").integer(-1);
  Reader reader(key);
  EXPECT_FALSE(reader.take_null());
  EXPECT_FALSE(reader.take_bytes());
  EXPECT_FALSE(reader.take_int());
  EXPECT_FALSE(reader.take_uint());
  EXPECT_FALSE(reader.take_big_integer());
  EXPECT_FALSE(reader.take_float32());
  EXPECT_FALSE(reader.take_float64());
  EXPECT_FALSE(reader.take_bool());
  EXPECT_FALSE(reader.take_uuid());
  EXPECT_FALSE(reader.take_versionstamp());
  EXPECT_FALSE(reader.begin_nested());
  EXPECT_FALSE(reader.end_nested());
  EXPECT_EQ(reader.rest(), key);
  EXPECT_EQ(reader.take_string(), "a");
  EXPECT_FALSE(reader.take_uint());
  EXPECT_EQ(reader.take_int(), -1);
  EXPECT_FALSE(reader.take_int());
  EXPECT_TRUE(reader.at_end());
}

TEST(Reader, gives_nothing_of_what_is_cut_short) {
  EXPECT_FALSE(Reader("\x01"
                      "abc")
                   .take_bytes());
  EXPECT_FALSE(Reader("\x02"
                      "abc")
                   .take_string());
  EXPECT_FALSE(Reader("\x16\x01").take_int());
  EXPECT_FALSE(Reader("\x16\x01").take_uint());
  EXPECT_FALSE(Reader("\x1d\x09"
                      "12345678")
                   .take_big_integer());
  EXPECT_FALSE(Reader("\x1d").take_big_integer());
  EXPECT_FALSE(Reader("\x20"
                      "123")
                   .take_float32());
  EXPECT_FALSE(Reader("\x21"
                      "1234567")
                   .take_float64());
  EXPECT_FALSE(Reader("\x30"
                      "123456789012345")
                   .take_uuid());
  EXPECT_FALSE(Reader("\x33"
                      "12345678901")
                   .take_versionstamp());
}

TEST(Reader, gives_no_integer_that_does_not_fit) {
  const auto reads = [](const BigInteger& value) {
    std::string key;
    Packer(key).big_integer(value);
    Reader as_int(key);
    Reader as_uint(key);
    return std::pair(as_int.take_int().has_value(), as_uint.take_uint().has_value());
  };
  EXPECT_EQ(reads({false, "\x7f\xff\xff\xff\xff\xff\xff\xff"}), std::pair(true, true));
  EXPECT_EQ(reads({false, "\x80\0\0\0\0\0\0\0"s}), std::pair(false, true));
  EXPECT_EQ(reads({true, "\x80\0\0\0\0\0\0\0"s}), std::pair(true, false));
  EXPECT_EQ(reads({true, "\x80\0\0\0\0\0\0\1"s}), std::pair(false, false));
  EXPECT_EQ(reads({false, "\1\0\0\0\0\0\0\0\0"s}), std::pair(false, false));
}

TEST(Reader, gives_no_text_that_is_not_utf8) {
  std::string key;
  Packer(key).string("a\xff");
  Reader reader(key);
  EXPECT_FALSE(reader.take_string());
  EXPECT_EQ(reader.rest(), key);
}

TEST(Packer, finishes_a_versionstamped_key_with_the_offset_in_the_whole_key) {
  std::string key = "p";
  Packer packer(key);
  packer.string("x").versionstamp(Versionstamp::incomplete(1)).integer(2).versionstamp(kStamp);
  packer.finish_versionstamped();
  EXPECT_EQ(to_hex(key.substr(key.size() - 4)), "05000000");
  EXPECT_EQ(to_hex(key.substr(5, 12)), "ffffffffffffffffffff0001");

  std::string none;
  EXPECT_THROW(Packer(none).versionstamp(kStamp).finish_versionstamped(), Error);
}

TEST(Versionstamp, goes_to_bytes_and_hex_and_back) {
  EXPECT_EQ(kStamp.bytes(), "0123456789\2\1");
  EXPECT_EQ(kStamp.transaction_version(), "0123456789");
  EXPECT_EQ(kStamp.user_version(), 513);
  EXPECT_EQ(kStamp.hex(), "303132333435363738390201");
  EXPECT_EQ(Versionstamp::from_bytes(kStamp.bytes()), kStamp);
  EXPECT_EQ(Versionstamp::from_hex(kStamp.hex()), kStamp);
  EXPECT_FALSE(Versionstamp::from_bytes("01234567890"));
  EXPECT_FALSE(Versionstamp::from_hex("30313233343536373839020"));
  EXPECT_FALSE(Versionstamp::from_hex("30313233343536373839020x"));
  EXPECT_THROW(Versionstamp::complete("012345678"), Error);
}

TEST(Versionstamp, orders_by_transaction_then_user_version_and_incomplete_last) {
  const auto stamp = [](std::string_view transaction, std::uint16_t user) {
    return Versionstamp::complete(transaction, user);
  };
  EXPECT_LT(Versionstamp(), stamp("000000000a", 9));
  EXPECT_LT(stamp("000000000a", 9), stamp("000000000b", 1));
  EXPECT_LT(stamp("000000000b", 1), stamp("000000000b", 256));
  EXPECT_LT(stamp("\x7f........b", 1), stamp("\x80........b", 0));
  EXPECT_LT(stamp("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 9), Versionstamp::incomplete());
  EXPECT_FALSE(Versionstamp::incomplete(1).is_complete());
  EXPECT_TRUE(stamp("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 9).is_complete());
}

}  // namespace
}  // namespace divan::kv::tuple
