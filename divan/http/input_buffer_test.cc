#include "divan/http/input_buffer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace divan::http {
namespace {

TEST(HttpInputBuffer, GrowsToItsLimitAndReleasesItsMemory) {
  InputBuffer buffer;
  constexpr std::size_t kLimit = 10'000;
  while (buffer.ensure_space(kLimit)) {
    const auto space = buffer.space();
    ASSERT_FALSE(space.empty());
    std::memset(space.data(), 'x', space.size());
    buffer.commit(space.size());
  }
  EXPECT_EQ(buffer.data(), std::string(kLimit, 'x'));
  buffer.clear();
  ASSERT_TRUE(buffer.ensure_space(kLimit));
  EXPECT_EQ(buffer.space().size(), kLimit);
  buffer.release();
  EXPECT_TRUE(buffer.space().empty());
  ASSERT_TRUE(buffer.ensure_space(kLimit));
  EXPECT_EQ(buffer.space().size(), InputBuffer::kSmall);
}

TEST(HttpInputBuffer, BehavesAsAString) {
  EXPECT_TRUE(rc::check("as a string that is appended to and cut", [](const std::vector<int>& steps) {
    InputBuffer buffer;
    std::string model;
    char next = 0;
    for (const int step : steps) {
      const auto amount = static_cast<std::size_t>(std::abs(step % 100)) * 97;
      if (buffer.empty() && step % 2 == 0) buffer.release();
      if (step >= 0 && buffer.ensure_space(5'000)) {
        RC_ASSERT(!buffer.space().empty());
        const auto space = buffer.space().first(std::min(amount + 1, buffer.space().size()));
        for (char& c : space) c = next++;
        model.append(space.data(), space.size());
        buffer.commit(space.size());
      } else {
        const auto used = std::min(amount, model.size());
        buffer.consume(used);
        model.erase(0, used);
      }
      RC_ASSERT(buffer.data() == model);
      RC_ASSERT(model.size() <= 5'000);
    }
  }));
}

}  // namespace
}  // namespace divan::http
