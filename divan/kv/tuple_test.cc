#include "divan/kv/tuple.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::kv::tuple {
namespace {

using namespace std::string_literals;
using divan::Error;  // not kv::Error

constexpr std::int64_t kIntMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kIntMin = std::numeric_limits<std::int64_t>::min();

struct Vector {
  Tuple tuple;
  std::string hex;
};

Tuple one(const Element& element) { return Tuple(1, element); }

// The examples of design/tuple.md, and those of the Java and Python bindings' tests.
std::vector<Vector> published_vectors() {
  const float minus_nan = std::bit_cast<float>(~std::uint32_t{0});
  const auto max_nan = std::bit_cast<double>(kIntMax);
  return {
      {{}, ""},
      {one(Bytes{"foo\0bar"s}), "01666f6f00ff62617200"},
      {one(String{"F\u00d4O\0bar"s}), "0246c3944f00ff62617200"},
      {one(Tuple{Bytes{"foo\0bar"s}, Null(), Tuple()}), "0501666f6f00ff6261720000ff050000"},
      {one(-5551212), "11ab4b93"},
      {one(-42.0f), "203dd7ffff"},
      {one(0), "14"},
      {one(1), "1501"},
      {one(-1), "13fe"},
      {one(255), "15ff"},
      {one(-255), "1300"},
      {one(256), "160100"},
      {one(-256), "12feff"},
      {one(65536), "17010000"},
      {one(-65536), "11feffff"},
      {one(kIntMax), "1c7fffffffffffffff"},
      {one(std::uint64_t{1} << 63), "1c8000000000000000"},
      {one(std::numeric_limits<std::uint64_t>::max()), "1cffffffffffffffff"},
      {one(BigInteger{false, "\1\0\0\0\0\0\0\0\0"s}), "1d09010000000000000000"},
      {one(BigInteger{true, "\1\0\0\0\0\0\0\0\0"s}), "0bf6feffffffffffffffff"},
      {one(-((std::int64_t{1} << 32) - 1)), "1000000000"},
      {one(kIntMin + 2), "0c8000000000000001"},
      {one(kIntMin + 1), "0c8000000000000000"},
      {one(kIntMin), "0c7fffffffffffffff"},
      {one(BigInteger{true, "\x80\0\0\0\0\0\0\1"s}), "0c7ffffffffffffffe"},
      {one(BigInteger{true, std::string(8, '\xff')}), "0c0000000000000000"},
      {one(3.14f), "20c048f5c3"},
      {one(-3.14f), "203fb70a3c"},
      {one(3.14), "21c0091eb851eb851f"},
      {one(-3.14), "213ff6e147ae147ae0"},
      {one(0.0f), "2080000000"},
      {one(-0.0f), "207fffffff"},
      {one(0.0), "218000000000000000"},
      {one(-0.0), "217fffffffffffffff"},
      {one(std::numeric_limits<float>::infinity()), "20ff800000"},
      {one(-std::numeric_limits<double>::infinity()), "21000fffffffffffff"},
      {one(minus_nan), "2000000000"},
      {one(max_nan), "21ffffffffffffffff"},
      {one(Bytes{}), "0100"},
      {one(Bytes{"\0\0\0\4"s}), "0100ff00ff00ff0400"},
      {one(String{}), "0200"},
      {one(String{"\u4e2d\u6587"}), "02e4b8ade6968700"},
      {one(String{"\U0001f525"}), "02f09f94a500"},
      {one(String{"\U0010ffff"}), "02f48fbfbf00"},
      {one(Null()), "00"},
      {one(one(Null())), "0500ff00"},
      {one(Tuple{Null(), String{"hello"}}), "0500ff0268656c6c6f0000"},
      {one(Tuple{Null(), String{"hell\0"s}}), "0500ff0268656c6c00ff0000"},
      {{one(Null()), String{"hello"}, Bytes{"\1\0"s}, Bytes{}}, "0500ff000268656c6c6f00010100ff000100"},
      {one(Uuid{{0xff, 0xff, 0xff, 0xff, 0xba, 0x5e, 0xba, 0x11, 0, 0, 0, 0, 0x5c, 0xa1, 0xab, 0x1e}}),
       "30ffffffffba5eba11000000005ca1ab1e"},
      {one(false), "26"},
      {one(true), "27"},
      {one(Versionstamp::complete("\xaa\xbb\xcc\xdd\xee\xff\0\1\2\3"s)), "33aabbccddeeff000102030000"},
      {one(Versionstamp::complete("\1\2\3\4\5\6\7\x8\x9\xa"s, 657)), "330102030405060708090a0291"},
  };
}

bool is_nan(const Element& element) {
  const auto* f = std::get_if<float>(&element);
  const auto* d = std::get_if<double>(&element);
  return (f && std::isnan(*f)) || (d && std::isnan(*d));
}

TEST(Tuple, packs_and_unpacks_the_published_vectors) {
  for (const Vector& vector : published_vectors()) {
    EXPECT_EQ(to_hex(pack(vector.tuple)), vector.hex) << to_string(vector.tuple);
    const Tuple unpacked = unpack(*from_hex(vector.hex));
    EXPECT_EQ(to_hex(pack(unpacked)), vector.hex);
    if (!vector.tuple.empty() && !is_nan(vector.tuple[0])) {
      EXPECT_EQ(unpacked, vector.tuple) << vector.hex;
    }
  }
}

TEST(Tuple, packs_an_integer_alike_in_each_type_that_holds_it) {
  EXPECT_EQ(pack({5}), pack({std::uint64_t{5}}));
  EXPECT_EQ(pack({5}), pack({BigInteger{false, "\0\0\5"s}}));
  EXPECT_EQ(pack({0}), pack({BigInteger{true, ""}}));
  EXPECT_EQ(pack({-256}), pack({BigInteger{true, "\1\0"s}}));
}

TEST(Tuple, holds_integers_of_255_bytes_and_no_more) {
  for (const bool negative : {false, true}) {
    const Tuple largest = one(BigInteger{negative, std::string(255, '\xab')});
    EXPECT_EQ(unpack(pack(largest)), largest);
    EXPECT_THROW(pack(one(BigInteger{negative, std::string(256, '\1')})), Error);
  }
}

TEST(Tuple, says_where_the_incomplete_versionstamp_is) {
  const Tuple plain{String{"a"}, Versionstamp::incomplete(7)};
  EXPECT_EQ(to_hex(pack_with_versionstamp(plain)), "02610033ffffffffffffffffffff000704000000");
  EXPECT_EQ(to_hex(pack_with_versionstamp(plain, "xy")), "787902610033ffffffffffffffffffff000706000000");
  const Tuple nested = one(one(Versionstamp::incomplete()));
  EXPECT_EQ(to_hex(pack_with_versionstamp(nested)), "0533ffffffffffffffffffff00000002000000");
  const std::string far =
      pack_with_versionstamp({Bytes{std::string(0x12345, 'x')}, Versionstamp::incomplete()});
  EXPECT_EQ(to_hex(far.substr(far.size() - 4)), "48230100");
}

TEST(Tuple, refuses_to_pack_the_wrong_number_of_incomplete_versionstamps) {
  const Versionstamp incomplete = Versionstamp::incomplete();
  EXPECT_THROW(pack({incomplete}), Error);
  EXPECT_THROW(pack(one(one(incomplete))), Error);
  EXPECT_THROW(pack_with_versionstamp({1}), Error);
  EXPECT_THROW(pack_with_versionstamp({incomplete, incomplete}), Error);
  EXPECT_THROW(pack_with_versionstamp({incomplete, one(incomplete)}), Error);
}

TEST(Tuple, unpacks_incomplete_versionstamps) {
  const std::string with_offset = pack_with_versionstamp({Versionstamp::incomplete(3)});
  const std::string_view without = std::string_view(with_offset).substr(0, with_offset.size() - 4);
  EXPECT_EQ(unpack(without), Tuple{Versionstamp::incomplete(3)});
}

// The malformed sequences of the Java binding's tests, and ours.
TEST(Tuple, refuses_malformed_bytes) {
  const char* const malformed[] = {
      "01deadc0de",                          // no end
      "01dead00ffc0de",                      // no end, an escaped zero inside
      "0268656c6c6f",                        //
      "0268656c00ff6c6f",                    //
      "02757466088000",                      // not UTF-8
      "0275746608c00100",                    //
      "0275746610eda0bd00",                  // a surrogate
      "050268656c6c6f00",                    // the nested tuple has no end
      "050268656c6c6f0000ff02746865726500",  //
      "1601",
      "1201",  // cut short
      "1d090102030405060708",
      "0bf60102030405060708",  //
      "20010203",
      "2101020304050607",                //
      "300102030405060708090a0b0c0d0e",  //
      "330102030405060708090a0b",        //
      "1d",
      "0b",
      "05",
      "02",
      "33",  //
      "ff",
      "03",
      "04",
      "06",
      "0a",
      "1e",
      "1f",
      "22",  // unknown types
      "23",
      "24",
      "25",
      "28",
      "31",
      "32",
      "40",  //
      "1500",
      "160001",
      "13ff",
      "12fffe",  // leading zero bytes
      "1d0900ffffffffffffffff",
      "0bf6ff0000000000000000",  //
      "1d08ffffffffffffffff",
      "0bf70000000000000000",  // the long form of what fits the short one
      "1d00",
      "0bff",
      "14ff",
      "00ff",  //
  };
  for (const char* hex : malformed) {
    try {
      const Tuple tuple = unpack(*from_hex(hex));
      ADD_FAILURE() << hex << " became " << to_string(tuple);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), 500);
      EXPECT_EQ(error.name(), "corrupt_key");
      EXPECT_THAT(error.reason(), testing::StartsWith("Not a packed tuple: "));
    }
  }
}

TEST(Tuple, error_says_what_is_wrong_where) {
  try {
    unpack("\x15\x05\x02hello");
    FAIL();
  } catch (const Error& error) { EXPECT_EQ(error.reason(), "Not a packed tuple: malformed text at byte 2."); }
}

TEST(Tuple, unpacks_no_prefix_of_a_value) {
  for (const Vector& vector : published_vectors()) {
    if (vector.tuple.size() != 1) continue;
    const std::string packed = pack(vector.tuple);
    for (std::size_t size = 1; size < packed.size(); ++size) {
      if (packed[size - 1] == '\0' && packed[size] == '\xff') continue;  // an end, but for the escape
      EXPECT_THROW(unpack(packed.substr(0, size)), Error) << vector.hex << " cut to " << size;
    }
  }
}

TEST(Tuple, bounds_the_nesting) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '\5') + std::string(depth, '\0'); };
  const Tuple deepest = unpack(nested(kMaxDepth));
  EXPECT_EQ(pack(deepest), nested(kMaxDepth));
  EXPECT_THROW(unpack(nested(kMaxDepth + 1)), Error);
  EXPECT_THROW(unpack(std::string(100'000, '\5')), Error);
}

TEST(Tuple, range_is_everything_longer) {
  const KeyRange all = range({String{"a"}});
  EXPECT_EQ(to_hex(all.begin), "02610000");
  EXPECT_EQ(to_hex(all.end), "026100ff");
  EXPECT_FALSE(all.contains(pack({String{"a"}})));
  EXPECT_TRUE(all.contains(pack({String{"a"}, Null()})));
  EXPECT_TRUE(all.contains(pack({String{"a"}, Versionstamp()})));
  EXPECT_FALSE(all.contains(pack({String{"a\0"s}})));
  EXPECT_FALSE(all.contains(pack({String{"b"}, 1})));
}

TEST(Tuple, prints_for_people) {
  EXPECT_EQ(to_string({String{"jobs"}, String{"pend"}, 5, Bytes{"\0"s}}), R"(("jobs", "pend", 5, b"\x00"))");
  EXPECT_EQ(to_string({}), "()");
  EXPECT_EQ(to_string({Null(), true, false, -1.5, 0.1f, one(Tuple()), std::uint64_t{1} << 63}),
            "(null, true, false, -1.5, 0.1f, (()), 9223372036854775808)");
  EXPECT_EQ(to_string({String{"\u00e9\"\\\n"}, Bytes{"a\xff"}}), R"(("é\"\\\x0a", b"a\xff"))");
  EXPECT_EQ(to_string({BigInteger{true, "\1\0\0\0\0\0\0\0\0"s}}), "(-0x010000000000000000)");
  EXPECT_EQ(to_string({Versionstamp::incomplete(2), Versionstamp()}),
            "(versionstamp(incomplete, 2), versionstamp(000000000000000000000000))");
  EXPECT_EQ(to_string({Uuid{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}}),
            "(00010203-0405-0607-0809-0a0b0c0d0e0f)");
  EXPECT_EQ(describe(pack({String{"jobs"}, 5})), R"(("jobs", 5))");
  EXPECT_EQ(describe("\xff/x"), R"(b"\xff/x")");
}

TEST(Strinc, is_the_first_key_after_a_prefix) {
  EXPECT_EQ(strinc("a"), "b");
  EXPECT_EQ(strinc("a\xff\xff"), "b");
  EXPECT_EQ(strinc("\x7f"), "\x80");
  EXPECT_EQ(strinc("a\0"s), "a\1");
  EXPECT_THROW(strinc(""), Error);
  EXPECT_THROW(strinc("\xff\xff"), Error);
}

}  // namespace
}  // namespace divan::kv::tuple
