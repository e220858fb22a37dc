// Races: concurrent first subscribers, the last unsubscription against a new subscription, and all operations
// together. Meant for the thread sanitizer.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <future>
#include <thread>
#include <utility>

#include "divan/events/bus.h"
#include "divan/events/test_stream.h"

namespace divan::events {
namespace {

/// Runs `work(i)` on `count` threads and waits for all of them.
template <class Work>
void on_threads(int count, Work work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (auto& thread : threads) thread.join();
}

TEST(BusThreads, ConcurrentFirstSubscribersShareOneChannel) {
  constexpr int kThreads = 4;
  Bus bus;
  std::barrier all(kThreads);
  std::atomic<int> wrong = 0;
  on_threads(kThreads, [&](int i) {
    for (int round = 0; round < 500; ++round) {
      all.arrive_and_wait();
      auto subscription = bus.subscribe("orders");
      all.arrive_and_wait();
      if (i == 0) {
        bus.publish("orders", [&] { return event_of(std::to_string(round)); });
        if (bus.stats().channels != 1) ++wrong;
      }
      all.arrive_and_wait();
      if (drain(subscription) != std::vector{std::to_string(round)}) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(bus.stats().channels, 0u);
}

/// Limits that hold all events of a test, however long the scheduler delays a subscriber.
SubscribeOptions large_mailbox() { return {.max_events = 100'000, .max_bytes = std::size_t{1} << 30}; }

// Each thread is in turn the last to unsubscribe and the first to subscribe; every subscriber must be
// reached.
TEST(BusThreads, ASubscriptionDuringTheRemovalOfItsChannelWorks) {
  Bus bus;
  std::atomic<int> missed = 0;
  on_threads(4, [&](int i) {
    for (int round = 0; round < 2000; ++round) {
      auto subscription = bus.subscribe("orders", large_mailbox());
      const auto mine = fmt::format("{}/{}", i, round);
      bus.publish("orders", [&] { return event_of(mine); });
      const auto texts = drain(subscription);
      if (std::count(texts.begin(), texts.end(), mine) != 1) ++missed;
    }
  });
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(bus.stats().channels, 0u);
  EXPECT_EQ(bus.stats().subscribers, 0u);
}

TEST(BusThreads, AHandleReachesSubscribersThatComeAndGo) {
  Bus bus;
  std::atomic<int> missed = 0;
  on_threads(3, [&](int i) {
    const auto handle = bus.publisher("orders");
    for (int round = 0; round < 2000; ++round) {
      auto subscription = bus.subscribe("orders", large_mailbox());
      const auto mine = fmt::format("{}/{}", i, round);
      handle.publish([&] { return event_of(mine); });
      const auto texts = drain(subscription);
      if (std::count(texts.begin(), texts.end(), mine) != 1) ++missed;
    }
  });
  EXPECT_EQ(missed, 0);
}

TEST(BusThreads, AllSubscribersSeeOneOrderThatKeepsEachPublishers) {
  constexpr int kPublishers = 3, kEvents = 2000;
  Bus bus;
  auto first = bus.subscribe("orders", large_mailbox());
  auto second = bus.subscribe("orders", large_mailbox());
  on_threads(kPublishers, [&](int i) {
    for (int n = 0; n < kEvents; ++n) {
      bus.publish("orders", [&] { return event_of(fmt::format("{}/{}", i, n)); });
    }
  });
  const auto texts = drain(first);
  EXPECT_EQ(texts, drain(second));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(kPublishers) * kEvents);
  std::array<int, kPublishers> next{};
  for (const auto& text : texts) {
    const int publisher = text[0] - '0';
    ASSERT_EQ(text, fmt::format("{}/{}", publisher, next[publisher]++));
  }
}

/// Blocks a thread until the gate is opened; another thread can wait until the first is blocked.
class Gate {
 public:
  void block() {
    entered_.set_value();
    opened_.wait();
  }
  void wait_until_blocked() { entered_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> entered_, open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

/// Returns true if `work` finishes while `gate` is closed; opens the gate afterwards.
template <class Work>
bool ends_before(Gate& gate, Work work) {
  auto done = std::async(std::launch::async, work);
  const bool in_time = done.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  gate.open();
  done.wait();
  return in_time;
}

void use(Bus& bus, std::string_view channel) {
  auto subscription = bus.subscribe(channel);
  bus.publish(channel, [] { return event_of("1"); });
  bus.publisher(channel).publish([] { return event_of("2"); });
  EXPECT_EQ(bus.stats().channels, bus.channels().size());
  const auto texts = drain(subscription);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "1"), 1);
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "2"), 1);
}

TEST(BusThreads, ACallbackThatDoesNotReturnBlocksNoOtherSubscriber) {
  Bus bus;
  Gate gate;
  auto stuck = bus.subscribe("orders", {.notify = [&] { gate.block(); }});
  std::thread publisher([&] { bus.publish("orders", [] { return event_of("0"); }); });
  gate.wait_until_blocked();
  EXPECT_TRUE(ends_before(gate, [&] {
    use(bus, "orders");
    use(bus, "users");
  }));
  publisher.join();
}

TEST(BusThreads, APublisherThatStillBuildsItsEventBlocksNoOther) {
  Bus bus;
  Gate gate;
  std::optional<Subscription> leaves = bus.subscribe("orders");
  std::thread publisher([&] {
    bus.publish("orders", [&] {
      gate.block();
      return event_of("0");
    });
  });
  gate.wait_until_blocked();
  EXPECT_TRUE(ends_before(gate, [&] {
    leaves.reset();
    use(bus, "orders");
    use(bus, "users");
  }));
  publisher.join();
}

/// A clock whose wait does not release the lock.
class StuckClock final : public Clock {
 public:
  explicit StuckClock(Gate& gate) : gate_(gate) {}
  MonotonicTime now() const override { return {}; }
  std::int64_t wall_ms() const override { return 0; }
  bool wait_until(std::unique_lock<Mutex>&, ConditionVariable&, MonotonicTime,
                  const std::function<bool()>& done) const override {
    gate_.block();
    return done();
  }

 private:
  Gate& gate_;
};

// With one lock or one queue for all channels, a publisher would wait for publishers of other channels.
TEST(BusThreads, PublishersOfDifferentChannelsDoNotContend) {
  Bus bus;
  Gate gate;
  auto orders = bus.subscribe("orders");
  auto users = bus.subscribe("users");
  const auto handle = bus.publisher("users");
  // The mailbox of one subscriber stays locked, so that a publisher blocks during its delivery.
  std::thread subscriber([&] { orders.next_until(StuckClock(gate), MonotonicTime::max()); });
  gate.wait_until_blocked();
  std::thread publisher([&] { bus.publish("orders", [] { return event_of("0"); }); });
  EXPECT_TRUE(ends_before(gate, [&] {
    for (int i = 0; i < 1000; ++i) {
      bus.publish("users", [] { return event_of("1"); });
      handle.publish([] { return event_of("2"); });
      bus.publish("no subscribers", [] { return event_of("3"); });
      drain(users);
    }
    use(bus, "invoices");
  }));
  publisher.join();
  subscriber.join();
}

/// Publishers by name and by handle, slow and fast subscribers, and subscribers with callbacks that come and
/// go, on channels that are created and removed all the time.
class Churn {
 public:
  void publish(int publisher) {
    const auto handle = bus_.publisher("0");
    for (int n = 0; n < kEvents; ++n) {
      const auto make = [&] { return Event{std::to_string(publisher), {}, std::to_string(n), {}}; };
      if (publisher % 2 == 0) {
        handle.publish(make);
      } else {
        bus_.publish("0", make);
      }
      bus_.publish("1", make);
      bus_.publish("2", make);
    }
    ++publishers_done_;
  }

  /// Stays subscribed for the whole run, and checks that each event of its channel was received or counted as
  /// dropped.
  void stay(Subscription subscription) {
    std::array<int, kPublishers> last;
    last.fill(-1);
    std::uint64_t seen = 0;
    for (;;) {
      const bool all_published = publishers_done_ == kPublishers;
      const auto message = subscription.try_next();
      if (!message && all_published) break;
      if (!message) {
        std::this_thread::yield();
      } else if (message->event == nullptr) {
        seen += message->lagged;
      } else {
        ++seen;
        int& previous = last[std::stoi(message->event->kind)];
        const int number = std::stoi(message->event->id);
        if (number <= std::exchange(previous, number)) ++wrong_;
      }
    }
    EXPECT_EQ(seen, static_cast<std::uint64_t>(kPublishers) * kEvents);
  }

  /// Subscribes and unsubscribes, with a callback that detects a call after its end.
  void come_and_go() {
    for (int round = 0; publishers_done_ < kPublishers || round < 100; ++round) {
      std::atomic<bool> alive = true;
      auto subscription = bus_.subscribe(std::to_string(round % 3), {.max_events = 2, .notify = [&] {
                                                                       if (!alive) ++wrong_;
                                                                     }});
      if (round % 2 == 0) std::this_thread::yield();
      drain(subscription);
      subscription.end();
      alive = false;
    }
  }

  static constexpr int kPublishers = 2, kEvents = 3000;
  Bus bus_;
  std::atomic<int> publishers_done_ = 0;
  std::atomic<int> wrong_ = 0;
};

TEST(BusThreads, PublishersSubscribersAndChurnTogether) {
  Churn churn;
  auto slow = churn.bus_.subscribe("0", {.max_events = 5});
  auto quick = churn.bus_.subscribe("0");
  on_threads(Churn::kPublishers + 4, [&](int i) {
    if (i < Churn::kPublishers) {
      churn.publish(i);
    } else if (i == Churn::kPublishers) {
      churn.stay(std::move(slow));
    } else if (i == Churn::kPublishers + 1) {
      churn.stay(std::move(quick));
    } else {
      churn.come_and_go();
    }
  });
  EXPECT_EQ(churn.wrong_, 0);
  const auto stats = churn.bus_.stats();
  EXPECT_EQ(stats.subscribers, 0u);
  EXPECT_EQ(stats.channels, 0u);
  EXPECT_GE(stats.delivered, stats.published);
}

}  // namespace
}  // namespace divan::events
