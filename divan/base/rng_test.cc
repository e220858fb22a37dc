#include "divan/base/rng.h"

#include <gmock/gmock.h>

#include <set>

namespace divan {
namespace {

// RFC 9562, appendix A.6: the time of its example of version 7.
TEST(Rng, UuidsOfATimeAreThoseOfVersion7) {
  SystemRng rng;
  constexpr std::int64_t kTime = 0x017F22E279B0;
  const std::string uuid = rng.uuid_at(kTime);
  EXPECT_THAT(uuid, testing::MatchesRegex("017f22e279b07[0-9a-f]{3}[89ab][0-9a-f]{15}"));
  EXPECT_NE(uuid, rng.uuid_at(kTime));
  EXPECT_LT(uuid, rng.uuid_at(kTime + 1));
}

TEST(Rng, TheSystemsNumbersDiffer) {
  SystemRng rng;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(rng.next());
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace divan
