#include "divan/collation/collation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/number.h"
#include "divan/collation/reference.h"

namespace divan::collation {
namespace {

using Values = std::vector<std::string>;

std::string key(std::string_view json, Collation collation = Collation::unicode) {
  return encode_key(json::compact(json), collation);
}

void expect_ascending(const Values& values, Collation collation = Collation::unicode) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      EXPECT_EQ(key(values[i], collation) <=> key(values[j], collation), i <=> j)
          << values[i] << " and " << values[j];
    }
  }
}

void expect_equal(const Values& values) {
  for (const std::string& value : values) EXPECT_EQ(key(value), key(values[0])) << value;
}

// The values of CouchDB's view_collation test, of its couch_ejson_compare_tests and of its documentation.
TEST(Collation, orders_the_values_of_couchdbs_tests) {
  expect_ascending({"null",
                    "false",
                    "true",
                    "-2",
                    "-0.1",
                    "0",
                    "0.1",
                    "1",
                    "2",
                    "3.0",
                    "4",
                    R"("a")",
                    R"("A")",
                    R"("aa")",
                    R"("b")",
                    R"("B")",
                    R"("ba")",
                    R"("bb")",
                    R"("c")",
                    R"("\uffff")",
                    R"(["a"])",
                    R"(["b"])",
                    R"(["b","c"])",
                    R"(["b","c","a"])",
                    R"(["b","d"])",
                    R"(["b","d","e"])",
                    R"({"a":1})",
                    R"({"a":2})",
                    R"({"b":1})",
                    R"({"b":2})",
                    R"({"b":2,"a":1})",
                    R"({"b":2,"c":2})",
                    R"({"x":[[[[[[[[[[["y"]]]]]]]]]]]})"});
}

TEST(Collation, orders_ascii_as_couchdbs_documentation_says) {
  const std::string_view order =
      "`^_-,;:!?.'\"()[]{}@*/\\&#%+<=>|~$0123456789"
      "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ";
  Values sorted;
  for (const char c : order) sorted.push_back(json::quoted(std::string(1, c)));
  std::sort(sorted.begin(), sorted.end(),
            [](const std::string& a, const std::string& b) { return key(a) < key(b); });
  // ICU has since moved the grave accent and the circumflex after the underscore and the brackets.
  std::string letters;
  for (const std::string& each : sorted) letters += *json::string_value(each);
  EXPECT_EQ(letters,
            "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
            "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ");
  expect_ascending({R"("abc")", R"("Abc")", R"("ABC")", R"("abc1")", R"("AbcZZZZZ")"});
}

TEST(Collation, orders_the_shorter_first) {
  expect_ascending({"[]", "[null]", "[null,null]", "[false]", "[[]]", "[[],null]", "[[null]]", "[{}]", "{}",
                    R"({"":null})", R"({"":[]})", R"({"a":null})", R"({"a":null,"b":1})", R"({"a":{}})"});
  expect_ascending({R"(["a",{}])", R"(["ab"])", R"(["ab",0])", R"([[],1])"});
}

TEST(Collation, encodes_values_that_couchdb_considers_equal_alike) {
  expect_equal({"1", "1.0", "1e0", "10E-1", "1.00"});
  expect_equal({"0", "-0", "-0.0", "0e5", "1e-400", "-1e-400"});
  expect_equal({R"("c")", R"("c\u200b")", R"("c\u200b\u200b")", R"("\u0000c\u0001")", R"("\u0063")"});
  expect_equal({R"("\u00e9")", R"("e\u0301")", "\"\u00e9\""});
  expect_equal({R"([1,{"a":2}])", R"( [ 1.0 , { "\u0061" : 2e0 } ] )"});
}

TEST(Collation, orders_large_integers_exactly) {
  expect_ascending({"-1e308",
                    "-85070591730234615865843651857942052864",  // -2^126, from where integers are doubles
                    "-85070591730234600000000000000000000001",
                    "-85070591730234600000000000000000000000",
                    "-9007199254740994",
                    "-9007199254740993",
                    "-9007199254740992",
                    "-9007199254740991",
                    "9007199254740991",
                    "9007199254740992",
                    "9007199254740993",
                    "9007199254740994.0",
                    "9007199254740995",
                    "9223372036854775806",
                    "9223372036854775807",
                    "9223372036854775808.0",
                    "9223372036854775809",
                    "18446744073709551614",
                    "18446744073709551615",
                    "18446744073709551616",
                    "18446744073709551617",
                    "100000000000000000000000000000000001",
                    "100000000000000000000000000000000002",
                    "1e36",
                    "1e308"});
  expect_equal({"9007199254740992", "9007199254740992.0", "9007199254740993.0"});
  // Beyond 2^126 integers are doubles.
  expect_equal({"340282366920938463463374607431768211456", "340282366920938463463374607431768211457",
                "3.402823669209384634633746074317682e38"});
}

TEST(Collation, reads_numbers_at_the_edges) {
  EXPECT_EQ(double_value("0.0000000001e312"), 1e302);
  EXPECT_EQ(double_value("0.0000000001e400"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(double_value("-100000000000e-500"), 0);
  EXPECT_EQ(double_value("1e-99999999999999999999"), 0);
  EXPECT_EQ(double_value("0e99999999999999999999"), 0);
  EXPECT_EQ(double_value("-" + std::string(310, '9')), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(double_value("0." + std::string(400, '0') + "1"), 0);
  EXPECT_EQ(double_value("0." + std::string(400, '0') + "1e5"), 0);
  EXPECT_EQ(double_value("1" + std::string(400, '0') + "e-5"), std::numeric_limits<double>::infinity());
  const std::string max = "170141183460469231731687303715884105727";
  const std::string min = "-170141183460469231731687303715884105728";
  EXPECT_EQ(to_string(*integer_value(max)), max);
  EXPECT_EQ(to_string(*integer_value(min)), min);
  EXPECT_FALSE(integer_value("170141183460469231731687303715884105728"));
  EXPECT_FALSE(integer_value("-170141183460469231731687303715884105729"));
  EXPECT_FALSE(integer_value("1.0"));
  EXPECT_FALSE(integer_value("123456789012345678901234e1"));
  EXPECT_EQ(to_string(*integer_value("-0")), "0");
}

TEST(Collation, ranges_of_keys_are_ranges_of_bytes) {
  // The row of a key, followed by a document's id.
  const auto row = [](std::string_view json) { return key(json) + "id"; };
  // endkey="b" without inclusive_end
  EXPECT_GE(row(R"("b")"), key(R"("b")"));
  EXPECT_LT(row(R"("aa")"), key(R"("b")"));
  // startkey=["XYZ"]&endkey=["XYZ",{}]
  for (const char* within : {R"(["XYZ"])", R"(["XYZ",0])", R"(["XYZ","\uffff"])", R"(["XYZ",[{}]])"}) {
    EXPECT_GE(row(within), key(R"(["XYZ"])"));
    EXPECT_LT(row(within), key(R"(["XYZ",{}])"));
  }
  EXPECT_LT(row(R"(["XYY"])"), key(R"(["XYZ"])"));
  EXPECT_LT(key(R"("abcZZZ")"), key(R"("abc\ufff0")"));
  EXPECT_LT(row(R"({"\uffff":{}})"), kAfterAllKeys);
}

TEST(Collation, groups_share_a_prefix) {
  const auto prefix = [](std::string_view json, std::size_t level) {
    return std::string(group_prefix(key(json), level));
  };
  EXPECT_EQ(prefix(R"(["a"])", 1), prefix(R"(["a",1,{"b":[2]}])", 1));
  EXPECT_EQ(prefix(R"([["a",[]],9007199254740993])", 2), prefix(R"([["a",[]],9007199254740993,1])", 2));
  EXPECT_NE(prefix(R"(["a"])", 2), prefix(R"(["a",1])", 2));
  EXPECT_NE(prefix(R"(["a"])", 1), prefix(R"(["aa"])", 1));
  EXPECT_NE(prefix(R"([])", 1), prefix(R"(["a"])", 1));
  for (const char* whole : {"[]", "null", "5", R"("a")", R"({"a":1})", "[1,2]", "[1,1e17]"}) {
    EXPECT_EQ(prefix(whole, 3), key(whole));
    EXPECT_EQ(group_prefix(key(whole) + "suffix", 3), key(whole));
  }
  const std::string raw = key(R"([false,"a\u0000\u0001",1])", Collation::raw);
  EXPECT_EQ(std::string(group_prefix(raw, 2, Collation::raw)) + key("1", Collation::raw) + '\0', raw);
  for (const std::string_view bad : {"", "\x06",
                                     "\x04"
                                     "1234567",
                                     "\x05"
                                     "abc",
                                     "\x06\x08", "\x09"}) {
    EXPECT_THROW(group_prefix(bad, 1), Error);
  }
}

// The values of CouchDB's view_collation_raw test.
TEST(Collation, orders_raw_as_erlang_does) {
  expect_ascending({"-1",
                    "1",
                    "2",
                    "3",
                    "4",
                    "false",
                    "null",
                    "true",
                    "{}",
                    R"({"a":1})",
                    R"({"a":2})",
                    R"({"b":1})",
                    R"({"b":2})",
                    R"({"b":2,"a":1})",
                    R"({"b":2,"c":2})",
                    "[]",
                    R"(["a"])",
                    R"(["b"])",
                    R"(["b","c"])",
                    R"(["b","c","a"])",
                    R"(["b","d"])",
                    R"(["b","d","e"])",
                    R"("")",
                    R"("\u0000")",
                    R"("\u0000\u0000")",
                    R"("\u0000\u0001")",
                    R"("\u0001")",
                    R"("\u0001a")",
                    R"("\u0002")",
                    R"("A")",
                    R"("B")",
                    R"("a")",
                    R"("aa")",
                    R"("b")",
                    R"("ba")",
                    R"("bb")",
                    "\"\u00e9\""},
                   Collation::raw);
}

TEST(Collation, rejects_text_that_is_not_compact_json) {
  for (const char* bad :
       {"", " 1", "1 ", "nul", "nix", "tru", "fals", "\"a", "\"a\\", "\"a\\\"", "x", "[1, 2]"}) {
    EXPECT_THROW(encode_key(bad), Error) << bad;
  }
}

TEST(Collation, accepts_deep_and_long_keys) {
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(key(deep).size(), 2000u);
  const std::string quoted = json::quoted(std::string(100'000, 'x'));
  const std::string longer = json::quoted(std::string(100'001, 'x'));
  EXPECT_LT(key(quoted), key(longer));
  EXPECT_THROW(encode_key(json::quoted(std::string((16 << 20) + 1, 'x'))), Error);
}

TEST(Collation, names_its_versions) {
  const std::string version = collation::version();
  EXPECT_TRUE(version.starts_with("1/")) << version;
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 6) << version;
  EXPECT_EQ(collation::version(Collation::raw), "1/raw");
}

TEST(Collation, works_in_many_threads_at_once) {
  const Values values{R"("stra\u00dfe")", R"("plain123")", R"(["A b",{"c":-1.5}])"};
  Values expected;
  for (const std::string& value : values) expected.push_back(key(value));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const auto at = static_cast<std::size_t>(i) % values.size();
        if (key(values[at]) != expected[at]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace divan::collation
