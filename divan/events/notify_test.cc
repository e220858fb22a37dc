// The callback of a subscription: when it is called, and the guarantees when the subscription ends.
#include <gmock/gmock.h>

#include <future>

#include "divan/events/bus.h"
#include "divan/events/test_stream.h"

namespace divan::events {
namespace {

using testing::ElementsAre;

void publish(Bus& bus, std::string kind) {
  bus.publish("orders", [&] { return event_of(std::move(kind)); });
}

TEST(Notify, IsCalledWhenTheEmptyMailboxGetsAnEntry) {
  Bus bus;
  int calls = 0;
  auto subscription = bus.subscribe("orders", {.notify = [&] { ++calls; }});
  EXPECT_EQ(calls, 0);
  publish(bus, "1");
  publish(bus, "2");
  EXPECT_EQ(calls, 1);
  subscription.try_next();
  publish(bus, "3");
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(drain(subscription), ElementsAre("2", "3"));
  publish(bus, "4");
  EXPECT_EQ(calls, 2);
}

TEST(Notify, MayTakeAndPublishItself) {
  Bus bus;
  std::vector<std::string> taken;
  Subscription subscription;
  subscription = bus.subscribe("orders", {.notify = [&] {
                                 for (auto& text : drain(subscription)) {
                                   taken.push_back(text);
                                   if (text.size() < 3) publish(bus, text + "+");
                                 }
                               }});
  publish(bus, "a");
  EXPECT_THAT(taken, ElementsAre("a", "a+", "a++"));
}

TEST(Notify, ACallbackThatThrowsAffectsNoOther) {
  Bus bus;
  const auto fails = [] { throw std::runtime_error("on purpose"); };
  const auto fails_oddly = [] { throw 42; };
  auto first = bus.subscribe("orders", {.notify = fails});
  auto second = bus.subscribe("orders", {.notify = fails_oddly});
  int calls = 0;
  auto third = bus.subscribe("orders", {.notify = [&] { ++calls; }});
  publish(bus, "1");
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(drain(first), ElementsAre("1"));
  EXPECT_THAT(drain(second), ElementsAre("1"));
  EXPECT_THAT(drain(third), ElementsAre("1"));
  first.end();
  publish(bus, "2");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(bus.stats().subscribers, 2u);
}

TEST(Notify, EndWaitsForACallbackThatRuns) {
  Bus bus;
  std::promise<void> running, go_on;
  std::atomic<bool> returned = false;
  auto subscription = bus.subscribe("orders", {.notify = [&] {
                                      running.set_value();
                                      go_on.get_future().wait();
                                      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                                      returned = true;
                                    }});
  std::thread publisher([&] { publish(bus, "1"); });
  running.get_future().wait();
  go_on.set_value();
  subscription.end();
  EXPECT_TRUE(returned);
  publisher.join();
}

TEST(Notify, EndDoesNotWaitForACallbackThatHasNotBegun) {
  Bus bus;
  std::promise<void> running, go_on;
  bool called = false;
  auto held = std::make_shared<int>(0);
  auto blocks = bus.subscribe("orders", {.notify = [&] {
                                running.set_value();
                                go_on.get_future().wait();
                              }});
  auto ends = bus.subscribe("orders", {.notify = [&, held] { called = true; }});
  std::thread publisher([&] { publish(bus, "1"); });
  running.get_future().wait();
  ends.end();  // its call was to follow the one that blocks
  EXPECT_EQ(held.use_count(), 1) << "the publisher still holds what the callback captured";
  go_on.set_value();
  publisher.join();
  EXPECT_FALSE(called);
}

TEST(Notify, ACallbackMayEndItsOwnSubscription) {
  Bus bus;
  int calls = 0;
  std::optional<Subscription> subscription;
  auto held = std::make_shared<int>(0);
  subscription = bus.subscribe("orders", {.notify = [&, held] {
                                 subscription.reset();
                                 ++calls;
                                 ++*held;  // what it captured is still there
                               }});
  auto other = bus.subscribe("orders");
  publish(bus, "1");
  publish(bus, "2");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(*held, 1);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_THAT(drain(other), ElementsAre("1", "2"));
  EXPECT_EQ(bus.stats().subscribers, 1u);
}

// Another publisher is about to call the callback of the subscription while the callback ends it.
TEST(Notify, AfterACallbackHasEndedItsOwnSubscriptionItIsNotCalledAgain) {
  Bus bus;
  std::promise<void> emptied, blocked, go_on;
  std::atomic<int> calls = 0;
  int calls_before = 0;
  Subscription before, ends;
  before = bus.subscribe("orders", {.notify = [&] {
                           drain(before);
                           if (++calls_before < 2) return;
                           blocked.set_value();
                           go_on.get_future().wait();
                         }});
  ends = bus.subscribe("orders", {.notify = [&] {
                         if (++calls > 1) return;
                         drain(ends);
                         emptied.set_value();
                         blocked.get_future().wait();
                         ends.end();
                       }});
  std::thread second([&] {
    emptied.get_future().wait();
    publish(bus, "2");
  });
  publish(bus, "1");
  go_on.set_value();
  second.join();
  EXPECT_EQ(calls, 1);
}

TEST(Notify, TheLastSubscriberMayEndItsOwnSubscription) {
  Bus bus;
  std::optional<Subscription> subscription;
  subscription = bus.subscribe("orders", {.notify = [&] { subscription.reset(); }});
  publish(bus, "1");
  EXPECT_FALSE(subscription);
  EXPECT_EQ(bus.stats().channels, 0u);
}

TEST(Notify, ACallbackMayEndAnotherSubscriptionWhoseCallIsDue) {
  Bus bus;
  std::optional<Subscription> first, second;
  int calls = 0;
  first = bus.subscribe("orders", {.notify = [&] {
                          second.reset();
                          ++calls;
                        }});
  second = bus.subscribe("orders", {.notify = [&] {
                           first.reset();
                           ++calls;
                         }});
  publish(bus, "1");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(bus.stats().subscribers, 1u);
}

}  // namespace
}  // namespace divan::events
