#include "divan/events/channel_name.h"

#include <rapidcheck/gtest.h>

namespace divan::events {
namespace {

/// The tuple that a name stands for, read as RFC 6901 says.
std::pair<std::string, std::string> pair_of(const std::string& name) {
  const auto second = name.find('/', 1);
  const auto decode = [](std::string part) {
    std::string out;
    for (std::size_t i = 0; i < part.size(); ++i) {
      out += part[i] != '~' ? part[i] : part[++i] == '1' ? '/' : '~';
    }
    return out;
  };
  return {decode(name.substr(1, second - 1)), decode(name.substr(second + 1))};
}

TEST(ChannelName, IsAJsonPointer) {
  EXPECT_EQ(channel_name({}), "");
  EXPECT_EQ(channel_name({""}), "/");
  EXPECT_EQ(channel_name({"dbs"}), "/dbs");
  EXPECT_EQ(channel_name({"db", "orders"}), "/db/orders");
  EXPECT_EQ(channel_name({"db", "a/b~c"}), "/db/a~1b~0c");
  EXPECT_EQ(channel_name({std::string_view("\0\xff", 2)}), std::string("/\0\xff", 3));
}

RC_GTEST_PROP(ChannelName, DifferentTuplesHaveDifferentNames, ()) {
  const auto part = rc::gen::container<std::string>(rc::gen::elementOf(std::string("/~01a")));
  const auto tuple = *rc::gen::pair(part, part);
  RC_ASSERT(pair_of(channel_name({tuple.first, tuple.second})) == tuple);
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
