#include "divan/events/channel_name.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace divan::events {
namespace {

TEST(ChannelName, IsAJsonPointer) {
  EXPECT_EQ(channel_name({}), "");
  EXPECT_EQ(channel_name({""}), "/");
  EXPECT_EQ(channel_name({"_dbs"}), "/_dbs");
  EXPECT_EQ(channel_name({"_db", "orders"}), "/_db/orders");
  EXPECT_EQ(channel_name({"_db", "a/b~c"}), "/_db/a~1b~0c");
  EXPECT_EQ(channel_name({std::string_view("\0\xff", 2)}), std::string("/\0\xff", 3));
}

// Hence different tuples have different names.
RC_GTEST_PROP(ChannelName, RoundTrip, ()) {
  const auto part = rc::gen::container<std::string>(rc::gen::elementOf(std::string("/~01a_")));
  const auto tuple = *rc::gen::container<std::vector<std::string>>(part);
  const auto name = channel_name(tuple);
  RC_ASSERT(channel_parts(name) == tuple);
  RC_ASSERT(is_own_channel(name) == (!tuple.empty() && tuple[0].starts_with('_')));
}

TEST(ChannelName, TuplesOfDifferentLengthDiffer) {
  const std::set<std::string> names = {
      channel_name({}),         channel_name({""}),     channel_name({"", ""}),
      channel_name({"a", "b"}), channel_name({"a/b"}),  channel_name({"ab"}),
      channel_name({"a", ""}),  channel_name({"a~1b"}), channel_name({"a"})};
  EXPECT_EQ(names.size(), 9u);
}

}  // namespace
}  // namespace divan::events
