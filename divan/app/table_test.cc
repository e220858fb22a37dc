#include "divan/app/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "divan/base/bytes.h"

namespace divan::app {
namespace {

TEST(Table, WidthsMatchATerminal) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("ü"), 1U);
  EXPECT_EQ(display_width("u\u0308"), 1U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("😀"), 2U);
}

TEST(Table, TruncationIsMarkedAndKeepsCharactersWhole) {
  EXPECT_EQ(cut("abcd", 4), "abcd");
  EXPECT_EQ(cut("abcde", 4), "abc…");
  EXPECT_EQ(cut("üüüüü", 4), "üüü…");
  EXPECT_EQ(cut("日本語", 5), "日本…");
  EXPECT_EQ(cut("日本語", 4), "日…");
  EXPECT_EQ(cut("abc", 1), "…");
  EXPECT_EQ(cut("abc", 0), "");
}

RC_GTEST_PROP(Table, TruncatedTextFits, (const std::string& bytes)) {
  const std::string text = printable(bytes + "日ü");
  const auto columns = *rc::gen::inRange<std::size_t>(0, 20);
  RC_ASSERT(display_width(cut(text, columns)) <= columns);
  RC_ASSERT(is_utf8(cut(text, columns)));
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(format_table({{"A", "LONG", "B"}, {"日本", "x", "1"}, {"ü", "", "2"}}),
            "A     LONG  B\n"
            "日本  x     1\n"
            "ü           2\n");
  EXPECT_EQ(format_table({{"A", "B"}, {"1"}, {}, {"2", ""}}), "A  B\n1\n\n2\n");
}

TEST(Table, ACellCannotContainNewlines) {
  EXPECT_EQ(format_table({{"a\nb", "\x1b[2J"}}), "a\\nb  \\u001b[2J\n");
}

TEST(Table, LinesAreTruncatedToTheTerminal) {
  EXPECT_EQ(format_table({{"id", "a long error"}, {"1", "short"}}, 10), "id  a lon…\n1   short\n");
}

}  // namespace
}  // namespace divan::app
