#include "divan/index/views/slow_documents.h"

#include <gtest/gtest.h>

namespace divan::index::views {
namespace {

using std::chrono::seconds;

SlowDocuments::Key numbered_key(std::size_t number) { return {1, "index", 0, std::to_string(number)}; }

TEST(SlowDocuments, AreCachedUntilTheLimitGrows) {
  SlowDocuments slow;
  EXPECT_TRUE(slow.empty());
  slow.add(numbered_key(1), seconds(5), "slow");
  EXPECT_EQ(slow.find(numbered_key(1), seconds(5)), "slow");
  EXPECT_EQ(slow.find(numbered_key(1), seconds(4)), "slow");
  EXPECT_EQ(slow.find(numbered_key(1), seconds(6)), std::nullopt);
  EXPECT_EQ(slow.find(numbered_key(2), seconds(5)), std::nullopt);
  slow.add(numbered_key(1), seconds(6), "slower");
  EXPECT_EQ(slow.find(numbered_key(1), seconds(6)), "slower");
}

TEST(SlowDocuments, TheOldestAreEvicted) {
  SlowDocuments slow;
  for (std::size_t i = 0; i <= SlowDocuments::kMax; ++i) slow.add(numbered_key(i), seconds(5), "slow");
  EXPECT_EQ(slow.find(numbered_key(0), seconds(5)), std::nullopt);
  EXPECT_EQ(slow.find(numbered_key(1), seconds(5)), "slow");
  EXPECT_EQ(slow.find(numbered_key(SlowDocuments::kMax), seconds(5)), "slow");
}

}  // namespace
}  // namespace divan::index::views
