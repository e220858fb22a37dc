#include "divan/base/ini.h"

#include <gtest/gtest.h>

#include "divan/base/error.h"

namespace divan::ini {
namespace {

TEST(IniTest, ReadsSectionsAndComments) {
  const Sections expected = {{"a b", {{"k", "v = w;x"}, {"empty", ""}}}, {"c", {{"url", "http://[::1]:1/"}}}};
  EXPECT_EQ(parse("\xef\xbb\xbf; first\r\n[ a b ] ; comment\r\n\r\n  k =  v = w;x\t; comment\r\nempty=;no\n"
                  "# another\n[c]\nurl=http://[::1]:1/"),
            expected);
}

TEST(IniTest, ContinuationLines) {
  const Sections expected = {{"a", {{"k", "one two three"}, {"l", "x"}}}};
  EXPECT_EQ(parse("[a]\nk = one\n  two ; comment\n; between\n\n\tthree\nl =\n x\n"), expected);
  EXPECT_THROW(parse("[a]\n  two\n"), Error);
}

TEST(IniTest, LongLinesAreRead) {
  const std::string value(100'000, 'x');
  EXPECT_EQ(parse("[a]\nk = " + value + "\n").at("a").at("k"), value);
}

TEST(IniTest, AMalformedLineIsNamed) {
  for (const auto* text :
       {"k = v\n", "[a\nk = v\n", "[]\n", "[a] b\n", "[a]\nk\n", "[a]\n= v\n", "[a]\nk = \xff\n"}) {
    EXPECT_THROW(parse(text), Error) << text;
  }
  try {
    parse("[a]\n\nnothing\n");
    FAIL();
  } catch (const Error& error) { EXPECT_EQ(error.reason(), "line 3: not a setting"); }
}

TEST(IniTest, RoundTrip) {
  const Sections sections = {{"a", {{"k", "v;w"}, {"l", ""}}}, {"b", {{"x", "[y] = #z"}}}};
  EXPECT_EQ(parse(to_text(sections)), sections);
}

TEST(IniTest, CanHoldIsFalseForSettingsThatDoNotRoundTrip) {
  EXPECT_TRUE(can_hold("a", "k", ""));
  EXPECT_TRUE(can_hold("a", "k", "v;w = [x]"));
  EXPECT_FALSE(can_hold("a", "k", "v ; w"));
  EXPECT_FALSE(can_hold("a", "k", ";v"));
  EXPECT_FALSE(can_hold("a", "k", " v"));
  EXPECT_FALSE(can_hold("a", "k", "v\nw"));
  EXPECT_FALSE(can_hold("a", "k", "v\r"));
  EXPECT_FALSE(can_hold("a", "k", "\xff"));
  EXPECT_FALSE(can_hold("a", "k=", "v"));
  EXPECT_FALSE(can_hold("a", ";k", "v"));
  EXPECT_FALSE(can_hold("a", "[k", "v"));
  EXPECT_FALSE(can_hold("a", "", "v"));
  EXPECT_FALSE(can_hold("a]", "k", "v"));
  EXPECT_FALSE(can_hold("", "k", "v"));
}

}  // namespace
}  // namespace divan::ini
