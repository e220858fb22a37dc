#include "divan/kv/check.h"

#include <gmock/gmock.h>

namespace divan::kv {
namespace {

TEST(Findings, AreReadableWhateverTheRowsHold) {
  Findings findings;
  findings.add("ü\n");
  findings.add(std::string_view("a\xff\0", 3));
  findings.add("what", "\x02\xff");
  EXPECT_THAT(findings.kept(), testing::ElementsAre("ü\\x0a", "a\\xff\\x00", "b\"\\x02\\xff\": what"));
}

TEST(Findings, AreCountedWhenTheyAreTooManyToKeep) {
  Findings first, all;
  for (std::size_t i = 0; i < Findings::kMaxKept + 5; ++i) first.add("one");
  all.add("another");
  all.add(first);
  EXPECT_EQ(all.kept().size(), Findings::kMaxKept);
  EXPECT_EQ(all.count(), Findings::kMaxKept + 6);
}

TEST(ChunkedValue, ChunksComeInOrderAndAllButTheLastAreFull) {
  const std::string full(kChunkBytes, 'x');
  ChunkedValue whole("p");
  EXPECT_TRUE(whole.add(0, full) && whole.add(1, full) && whole.add(2, "end"));
  EXPECT_EQ(whole.text(), full + full + "end");
  EXPECT_EQ(whole.chunks(), 3);
  ChunkedValue without_first("p"), with_gap("p"), with_short_one("p");
  EXPECT_FALSE(without_first.add(1, full));
  EXPECT_TRUE(with_gap.add(0, full));
  EXPECT_FALSE(with_gap.add(2, "end"));
  EXPECT_TRUE(with_short_one.add(0, "short"));
  EXPECT_FALSE(with_short_one.add(1, "end"));
  for (const auto* value : {&without_first, &with_gap, &with_short_one}) EXPECT_FALSE(value->text());
  ChunkedValue with_last_number("p");
  EXPECT_FALSE(with_last_number.add(INT64_MAX, full));
  EXPECT_EQ(with_last_number.chunks(), INT64_MAX);
}

}  // namespace
}  // namespace divan::kv
