#include "divan/replicator/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace divan::replicator {
namespace {

using ::testing::Optional;
using ::testing::SizeIs;

std::optional<Checkpoint> checkpoint(const std::string& id, const std::string& sequence,
                                     const std::vector<std::string>& earlier = {}) {
  return Checkpoint::parse(checkpoint_body({.id = id, .end_last_seq = sequence}, earlier));
}

std::string session(const std::string& id, const std::string& sequence) {
  return Session{.id = id, .end_last_seq = sequence}.json();
}

TEST(CheckpointTest, GoesOnFromTheLastSessionThatBothSidesHave) {
  const auto newest = checkpoint("c", "30", {session("b", "20"), session("a", "10")});
  EXPECT_THAT(common_sequence(newest, newest), Optional(std::string("30")));
  // The second side was not written any more.
  EXPECT_THAT(common_sequence(newest, checkpoint("b", "20", {session("a", "10")})),
              Optional(std::string("20")));
  EXPECT_THAT(common_sequence(checkpoint("a", "10"), newest), Optional(std::string("10")));
  EXPECT_EQ(common_sequence(newest, checkpoint("x", "99")), std::nullopt);
  EXPECT_EQ(common_sequence(newest, std::nullopt), std::nullopt);
}

TEST(CheckpointTest, KeepsTheLastSessions) {
  std::vector<std::string> earlier;
  for (int i = 0; i < 80; ++i) earlier.push_back(session(std::to_string(i), "1"));
  EXPECT_THAT(checkpoint("new", "2", earlier)->history, SizeIs(kMaxHistory));
}

// The sequences of CouchDB 1 are numbers.
TEST(CheckpointTest, ReadsThoseOfOtherServers) {
  const auto old = Checkpoint::parse(
      R"({"session_id":"s","source_last_seq":7,"history":[{"session_id":"s","recorded_seq":7}]})");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->source_last_seq, "7");
  EXPECT_EQ(Checkpoint::parse(R"({"last_seq":"7","history":[]})"), std::nullopt);
  EXPECT_EQ(Checkpoint::parse("[]"), std::nullopt);
}

}  // namespace
}  // namespace divan::replicator
