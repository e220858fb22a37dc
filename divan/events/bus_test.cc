#include "divan/events/bus.h"

#include <gmock/gmock.h>

#include "divan/events/test_stream.h"

namespace divan::events {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Bus, WithoutSubscribersNoEventIsBuilt) {
  Bus bus;
  const auto other = bus.subscribe("other");
  const auto handle = bus.publisher("orders");
  int built = 0;
  const auto make = [&] {
    ++built;
    return event_of("updated");
  };
  bus.publish("orders", make);
  bus.publish("never subscribed", make);
  handle.publish(make);
  bus.subscribe("orders").end();
  bus.publish("orders", make);
  handle.publish(make);
  EXPECT_EQ(built, 0);
  EXPECT_EQ(bus.stats().published, 0u);
  EXPECT_EQ(bus.stats().delivered, 0u);

  auto listening = bus.subscribe("orders");
  bus.publish("orders", make);
  handle.publish(make);
  EXPECT_EQ(built, 2);
}

TEST(Bus, EverySubscriberOfAChannelGetsItsEventsAndNoOthers) {
  Bus bus;
  auto a = bus.subscribe("orders");
  auto b = bus.subscribe("orders");
  auto c = bus.subscribe("users");
  bus.publish("orders", [] { return event_of("1"); });
  bus.publish("users", [] { return event_of("2"); });
  bus.publisher("orders").publish([] { return event_of("3"); });
  EXPECT_THAT(drain(a), ElementsAre("1", "3"));
  EXPECT_THAT(drain(b), ElementsAre("1", "3"));
  EXPECT_THAT(drain(c), ElementsAre("2"));
  EXPECT_EQ(c.channel(), "users");
}

TEST(Bus, SubscribersShareOneCopyOfAnEvent) {
  Bus bus;
  auto a = bus.subscribe("orders");
  auto b = bus.subscribe("orders");
  bus.publish("orders", [] { return Event{"updated", "orders", "doc", R"({"n":1})"}; });
  const auto in_a = a.try_next(), in_b = b.try_next();
  ASSERT_TRUE(in_a && in_b);
  EXPECT_EQ(in_a->event, in_b->event);
  EXPECT_EQ(in_a->event->payload, R"({"n":1})");
}

TEST(Bus, TwoSubscriptionsOfOneSubscriberHaveTwoIdentities) {
  Bus bus;
  auto first = bus.subscribe("orders");
  auto second = bus.subscribe("orders");
  auto third = bus.subscribe("users");
  EXPECT_EQ((std::set{first.id(), second.id(), third.id()}).size(), 3u);
  bus.publish("orders", [] { return event_of("1"); });
  EXPECT_EQ(first.try_next()->subscription, first.id());
  EXPECT_EQ(second.try_next()->subscription, second.id());

  first.end();
  first.end();
  bus.publish("orders", [] { return event_of("2"); });
  EXPECT_THAT(drain(second), ElementsAre("2"));
  EXPECT_EQ(bus.stats().subscribers, 2u);
}

TEST(Bus, ASubscriptionEndsWithItsHandle) {
  Bus bus;
  std::optional<Subscription> holder = bus.subscribe("orders");
  const auto id = holder->id();
  Subscription moved = std::move(*holder);
  holder.reset();
  bus.publish("orders", [] { return event_of("1"); });
  EXPECT_EQ(moved.id(), id);
  EXPECT_THAT(drain(moved), ElementsAre("1"));

  moved = bus.subscribe("users");
  EXPECT_EQ(bus.stats().subscribers, 1u);
  bus.publish("orders", [] { return event_of("2"); });
  EXPECT_THAT(drain(moved), IsEmpty());
}

TEST(Bus, TheLastSubscriberToLeaveRemovesTheChannel) {
  Bus bus;
  auto first = bus.subscribe("orders");
  auto second = bus.subscribe("orders");
  EXPECT_EQ(bus.stats().channels, 1u);
  first.end();
  EXPECT_EQ(bus.stats().channels, 1u);
  second.end();
  EXPECT_EQ(bus.stats().channels, 0u);
  auto again = bus.subscribe("orders");
  bus.publish("orders", [] { return event_of("1"); });
  EXPECT_THAT(drain(again), ElementsAre("1"));
}

TEST(Bus, AHandleReachesLaterSubscribers) {
  Bus bus;
  auto handle = bus.publisher("orders");
  auto early = bus.subscribe("orders");
  early.end();
  EXPECT_EQ(bus.stats().channels, 0u);
  auto late = bus.subscribe("orders");
  handle.publish([] { return event_of("1"); });
  bus.publish("orders", [] { return event_of("2"); });
  auto second_handle = bus.publisher("orders");
  second_handle.publish([] { return event_of("3"); });
  handle = bus.publisher("users");
  second_handle.publish([] { return event_of("4"); });
  handle.publish([] { return event_of("to users"); });
  EXPECT_THAT(drain(late), ElementsAre("1", "2", "3", "4"));
}

TEST(Bus, PublishReturnsTheNumberOfSubscriptions) {
  Bus bus;
  const auto handle = bus.publisher("orders");
  const auto make = [] { return event_of("1"); };
  EXPECT_EQ(bus.publish("orders", make), 0u);
  EXPECT_EQ(handle.publish(make), 0u);
  auto first = bus.subscribe("orders");
  auto second = bus.subscribe("orders", {.max_events = 0});
  auto other = bus.subscribe("users");
  EXPECT_EQ(bus.publish("orders", make), 2u);
  EXPECT_EQ(handle.publish(make), 2u);
  second.end();
  EXPECT_EQ(bus.publish("orders", make), 1u);
}

TEST(Bus, ListsTheChannelsThatHaveSubscribers) {
  Bus bus;
  const auto list = [&] {
    std::map<std::string, std::size_t> subscribers;
    for (const auto& channel : bus.channels()) subscribers[channel.name] += channel.subscribers;
    return subscribers;
  };
  using Map = std::map<std::string, std::size_t>;
  const auto handle = bus.publisher("handle only");
  EXPECT_EQ(list(), Map());
  auto first = bus.subscribe("orders");
  auto second = bus.subscribe("orders");
  auto third = bus.subscribe("users");
  EXPECT_EQ(list(), (Map{{"orders", 2}, {"users", 1}}));
  first.end();
  third.end();
  EXPECT_EQ(list(), (Map{{"orders", 1}}));
}

// There are more channels than the directory has chains, so many share one.
TEST(Bus, NamesOfOneChainAreDistinguished) {
  constexpr int kNames = 10'000;
  Bus bus;
  std::vector<Subscription> subscriptions;
  subscriptions.reserve(kNames);
  for (int i = 0; i < kNames; ++i) subscriptions.push_back(bus.subscribe(std::to_string(i)));
  EXPECT_EQ(bus.stats().channels, static_cast<std::size_t>(kNames));
  for (int i = 0; i < kNames; i += 2) subscriptions[i].end();
  for (int i = 0; i < kNames; ++i) {
    bus.publish(std::to_string(i), [i] { return event_of(std::to_string(i)); });
  }
  EXPECT_EQ(bus.stats().delivered, static_cast<std::uint64_t>(kNames) / 2);
  for (int i = 1; i < kNames; i += 2) ASSERT_THAT(drain(subscriptions[i]), ElementsAre(std::to_string(i)));
}

TEST(Bus, ANameIsBytes) {
  Bus bus;
  auto empty = bus.subscribe("");
  auto zero = bus.subscribe(std::string_view("\0", 1));
  auto two = bus.subscribe(std::string_view("\0\xff", 2));
  bus.publish(std::string_view("\0", 1), [] { return event_of("1"); });
  EXPECT_THAT(drain(empty), IsEmpty());
  EXPECT_THAT(drain(zero), ElementsAre("1"));
  EXPECT_THAT(drain(two), IsEmpty());
}

TEST(Bus, AnExceptionOfThePublishersCallablePropagates) {
  Bus bus;
  auto subscription = bus.subscribe("orders");
  const auto make = []() -> Event { throw std::runtime_error("on purpose"); };
  EXPECT_THROW(bus.publish("orders", make), std::runtime_error);
  EXPECT_THROW(bus.publisher("orders").publish(make), std::runtime_error);
  EXPECT_THAT(drain(subscription), IsEmpty());
  EXPECT_EQ(bus.stats().published, 0u);
}

TEST(Bus, AStalledSubscriberGetsAMarkerAndOthersMissNoEvent) {
  Bus bus;
  auto stalled = bus.subscribe("orders", {.max_events = 3});
  auto stalled_worse = bus.subscribe("orders", {.max_events = 1});
  auto keeps_up = bus.subscribe("orders");
  std::vector<std::string> kept_up;
  for (int i = 1; i <= 20'000; ++i) {
    bus.publish("orders", [i] { return event_of(std::to_string(i)); });
    for (auto& text : drain(keeps_up)) kept_up.push_back(text);
  }
  EXPECT_EQ(kept_up.size(), 20'000u);
  EXPECT_EQ(kept_up.back(), "20000");
  EXPECT_THAT(drain(stalled), ElementsAre("lagged(19997)", "19998", "19999", "20000"));
  EXPECT_THAT(drain(stalled_worse), ElementsAre("lagged(19999)", "20000"));
  EXPECT_EQ(bus.stats().published, 20'000u);
  EXPECT_EQ(bus.stats().delivered, 60'000u);
  EXPECT_EQ(bus.stats().lagged, 19'997u + 19'999u);
}

// For example a feed that only wants to be woken, and then reads the changes from the store.
TEST(Bus, ASubscriberThatOnlyCountsIsNotCountedAsLagged) {
  Bus bus;
  auto wakes = bus.subscribe("orders", {.max_events = 0});
  for (int i = 0; i < 3; ++i) bus.publish("orders", [] { return event_of("1"); });
  EXPECT_THAT(drain(wakes), ElementsAre("lagged(3)"));
  EXPECT_EQ(bus.stats().delivered, 3u);
  EXPECT_EQ(bus.stats().lagged, 0u);
}

TEST(Bus, ASubscriberWaitsForAnEventOrItsDeadline) {
  Bus bus;
  ManualClock clock;
  auto subscription = bus.subscribe("orders");
  bus.publish("orders", [] { return event_of("1"); });
  EXPECT_EQ(text_of(*subscription.next_until(clock, clock.now())), "1");
  EXPECT_FALSE(subscription.next_until(clock, clock.now()));

  // With the real clock: unlike the manual one, it does not poll the condition.
  std::thread publisher([&] { bus.publish("orders", [] { return event_of("2"); }); });
  EXPECT_EQ(text_of(*subscription.next_until(SystemClock(), MonotonicTime::max())), "2");
  publisher.join();

  const auto deadline = clock.now() + std::chrono::minutes(1);
  std::thread time([&] { clock.advance(std::chrono::minutes(1)); });
  EXPECT_FALSE(subscription.next_until(clock, deadline));
  time.join();
}

}  // namespace
}  // namespace divan::events
