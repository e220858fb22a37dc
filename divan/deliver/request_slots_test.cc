#include "divan/deliver/request_slots.h"

#include <gtest/gtest.h>

namespace divan::deliver {
namespace {

using Class = RequestSlots::Class;

struct RequestSlotsTest : testing::Test {
  RequestSlots slots;

  void SetUp() override { slots.set_limits({.requests = 40, .requests_of_host = 40}); }
  std::size_t free(Speed speed, std::size_t own = 0, const std::string& host = "h") {
    return slots.free(host, own, speed).count;
  }
  // Takes all that a type with a host of its own may have.
  std::size_t take_all(const std::string& host, Speed speed) {
    std::size_t own = 0;
    for (auto next = slots.free(host, own, speed); next.count > 0; next = slots.free(host, own, speed)) {
      slots.take(host, next.slot_class, 0);
      ++own;
    }
    return own;
  }
};

TEST_F(RequestSlotsTest, ATypeHasHalfOfWhatOthersLeave) {
  EXPECT_EQ(take_all("a", Speed::fast), 20u);
  EXPECT_EQ(take_all("b", Speed::fast), 10u);
  EXPECT_EQ(take_all("c", Speed::fast), 5u);
}

TEST_F(RequestSlotsTest, AHostIsLimited) {
  slots.set_limits({.requests = 40, .requests_of_host = 4});
  EXPECT_EQ(free(Speed::fast), 2u);
  slots.take("h", Class::fast, 0);
  slots.take("h", Class::fast, 0);
  EXPECT_EQ(free(Speed::fast, 2), 0u) << "the same type";
  EXPECT_EQ(free(Speed::fast, 0), 1u) << "another one";
  EXPECT_EQ(free(Speed::fast, 0, "other"), 2u);
}

TEST_F(RequestSlotsTest, AQuarterIsForTypesThatAreFast) {
  std::size_t slow = 0;
  for (int i = 0; i < 100; ++i) slow += take_all("slow" + std::to_string(i), Speed::slow);
  EXPECT_EQ(slow, 30u);
  EXPECT_EQ(free(Speed::fast), 5u);
}

TEST_F(RequestSlotsTest, AnEighthIsForFirstRequests) {
  for (int i = 0; i < 100; ++i) take_all("slow" + std::to_string(i), Speed::slow);
  for (int i = 0; i < 5; ++i) {
    const auto first = slots.free("h", 0, Speed::unknown);
    ASSERT_EQ(first.count, 1u);
    EXPECT_EQ(first.slot_class, Class::first);
    slots.take("h", first.slot_class, 0);
    EXPECT_EQ(free(Speed::unknown, 1), 0u) << "not for the second one of a type";
  }
  EXPECT_EQ(free(Speed::unknown), 0u);
  EXPECT_GT(free(Speed::fast), 0u);
}

TEST_F(RequestSlotsTest, OneSlotSuffices) {
  slots.set_limits({.requests = 1, .requests_of_host = 1});
  const auto only = slots.free("h", 0, Speed::slow);
  ASSERT_EQ(only.count, 1u);
  slots.take("h", only.slot_class, 0);
  EXPECT_EQ(free(Speed::fast), 0u);
  slots.give_back("h", only.slot_class, 0);
  EXPECT_EQ(free(Speed::fast), 1u);
}

TEST_F(RequestSlotsTest, BytesAreLimited) {
  slots.set_limits({.requests = 40, .requests_of_host = 40, .bytes = 100});
  slots.take("a", Class::fast, 99);
  EXPECT_GT(free(Speed::fast), 0u);
  slots.take("a", Class::fast, 1);
  EXPECT_EQ(free(Speed::fast), 0u);
  slots.give_back("a", Class::fast, 99);
  EXPECT_GT(free(Speed::fast), 0u);
}

TEST_F(RequestSlotsTest, LoweredLimits) {
  for (int i = 0; i < 10; ++i) slots.take("a", Class::fast, 0);
  slots.set_limits({.requests = 5, .requests_of_host = 5});
  EXPECT_EQ(free(Speed::fast), 0u);
  EXPECT_EQ(free(Speed::slow, 10, "a"), 0u);
}

}  // namespace
}  // namespace divan::deliver
