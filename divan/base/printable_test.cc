#include "divan/base/printable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "divan/base/bytes.h"

namespace divan {
namespace {

TEST(Printable, TerminalControlsAreEscaped) {
  EXPECT_EQ(printable("plain, ü, 日本, 😀"), "plain, ü, 日本, 😀");
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(printable("\x1b[31mred"), "\\u001b[31mred");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\u0000\\u007f");
  EXPECT_EQ(printable("\u009b2J"), "\\u009b2J");            // CSI, as one character
  EXPECT_EQ(printable("exe.\u202egnp"), "exe.\\u202egnp");  // right-to-left override
}

TEST(Printable, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");                           // truncated
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");                    // overlong
  EXPECT_EQ(printable("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");           // overlong, three bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

RC_GTEST_PROP(Printable, AnyBytesBecomePrintable, (const std::string& bytes)) {
  const std::string text = printable(bytes);
  RC_ASSERT(is_utf8(text));
  RC_ASSERT(printable(text) == text);
}

}  // namespace
}  // namespace divan
