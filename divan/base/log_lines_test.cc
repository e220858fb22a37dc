#include "divan/base/log_lines.h"

#include <gtest/gtest.h>

#include "divan/base/log.h"

namespace divan::log {
namespace {

TEST(LogLinesTest, KeepsTheLastLines) {
  configure(Level::warning, "/dev/null");
  for (std::size_t i = 0; i < kRecentLines + 5; ++i) error("line {}", i);
  const auto all = recent_lines(10'000);
  ASSERT_EQ(all.size(), kRecentLines);
  EXPECT_EQ(all.front().text, "line 5");
  EXPECT_EQ(all.back().text, "line 1004");
  EXPECT_EQ(all.back().level, "error");
  EXPECT_EQ(recent_lines(2).front().text, "line 1003");
  EXPECT_TRUE(recent_lines(10, all.back().time_us).empty());
  warning("a\nb");
  const auto last = recent_lines(1);
  EXPECT_EQ(last.front().level, "warning");
  EXPECT_EQ(last.front().text.find('\n'), std::string::npos);
  EXPECT_GE(last.front().time_us, all.back().time_us);
  configure(Level::warning);
}

}  // namespace
}  // namespace divan::log
