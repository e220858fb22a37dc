#include "divan/events/listener.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <future>
#include <utility>

#include "divan/base/error.h"

namespace divan::events {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

/// Records a listener's calls as text; tests can wait for them.
class Record {
 public:
  void add(std::string text) {
    {
      std::lock_guard lock(mutex_);
      texts_.push_back(std::move(text));
    }
    changed_.notify_all();
  }

  /// Returns the texts as soon as there are at least `count`, or after a generous timeout.
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return texts_.size() >= count; });
    return texts_;
  }

  /// Returns true as soon as the last text is this one, or false after a generous timeout.
  bool wait_for_last(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return !texts_.empty() && texts_.back() == text; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

class ListenerTest : public testing::Test {
 protected:
  ListenerCallbacks recording() {
    ListenerCallbacks callbacks;
    callbacks.event = [this](const Event& event) { record_.add(event.kind + " " + event.database); };
    callbacks.lagged = [this](std::uint64_t missed) { record_.add(fmt::format("lagged({})", missed)); };
    return callbacks;
  }

  void publish(std::string_view database, DatabaseEvent kind = DatabaseEvent::updated) {
    publish_database_event(bus_, database, kind);
  }

  Bus bus_;
  ManualClock clock_;
  Record record_;
};

TEST_F(ListenerTest, ReceivesEventsOfItsDatabases) {
  Listener listener(bus_, clock_, recording());
  listener.listen({.names = {"orders", "users"}});
  publish("orders", DatabaseEvent::created);
  publish("others");
  publish("orders", DatabaseEvent::deleted);
  EXPECT_THAT(record_.wait_for(2), ElementsAre("created orders", "deleted orders"));
  publish("users");
  EXPECT_THAT(record_.wait_for(3), ElementsAre("created orders", "deleted orders", "updated users"));
}

TEST_F(ListenerTest, ReceivesEventsOfAllDatabases) {
  Listener listener(bus_, clock_, recording());
  listener.listen({.all = true});
  publish("orders");
  publish("users", DatabaseEvent::created);
  EXPECT_THAT(record_.wait_for(2), ElementsAre("updated orders", "created users"));
}

TEST_F(ListenerTest, OneAndAllAreTwoMessages) {
  Listener listener(bus_, clock_, recording());
  listener.listen({.all = true, .names = {"orders"}});
  publish("orders");
  EXPECT_THAT(record_.wait_for(2), ElementsAre("updated orders", "updated orders"));
  publish("users");
  EXPECT_EQ(record_.wait_for(3).size(), 3u);
  EXPECT_EQ(bus_.stats().delivered, 3u);
}

TEST_F(ListenerTest, RegisteringAgainReplaces) {
  Listener listener(bus_, clock_, recording());
  listener.listen({.all = true, .names = {"orders", "users"}});
  listener.listen({.names = {"users", "invoices"}});
  EXPECT_EQ(bus_.stats().subscribers, 2u);
  publish("orders");
  publish("users");
  EXPECT_THAT(record_.wait_for(1), ElementsAre("updated users"));
  publish("invoices");
  EXPECT_THAT(record_.wait_for(2), ElementsAre("updated users", "updated invoices"));
  EXPECT_EQ(bus_.stats().published, 2u);
}

// The listener blocks in its first event while others are pending and it is registered again.
TEST_F(ListenerTest, RegisteringAgainDropsPendingEventsOfRemovedDatabasesOnly) {
  std::promise<void> entered, go_on;
  auto callbacks = recording();
  callbacks.event = [&, record = callbacks.event](const Event& event) {
    record(event);
    if (event.kind == "created") {
      entered.set_value();
      go_on.get_future().wait();
    }
  };
  Listener listener(bus_, clock_, callbacks);
  listener.listen({.names = {"orders", "users"}});
  publish("users", DatabaseEvent::created);
  entered.get_future().wait();
  publish("orders");
  publish("users");
  listener.listen({.names = {"users", "invoices"}});
  publish("invoices", DatabaseEvent::deleted);
  go_on.set_value();
  EXPECT_EQ(record_.wait_for(3)[0], "created users");
  EXPECT_THAT(record_.wait_for(3),
              UnorderedElementsAre("created users", "updated users", "deleted invoices"));
}

TEST_F(ListenerTest, UnregisteringEndsTheMessagesUntilItListensAgain) {
  Listener listener(bus_, clock_, recording());
  listener.listen({.names = {"orders"}});
  listener.unregister();
  EXPECT_EQ(bus_.stats().subscribers, 0u);
  publish("orders", DatabaseEvent::created);
  listener.listen({.names = {"orders"}});
  publish("orders", DatabaseEvent::deleted);
  EXPECT_THAT(record_.wait_for(1), ElementsAre("deleted orders"));
}

TEST_F(ListenerTest, UnregisteringThrowsIfItIsNotRegistered) {
  Listener registered(bus_, clock_, recording());
  registered.listen({.names = {"orders"}});
  Listener unregistered(bus_, clock_, {});
  try {
    unregistered.unregister();
    FAIL() << "unregister() must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 404);
    EXPECT_EQ(error.name(), "not_registered");
  }
  EXPECT_EQ(bus_.stats().subscribers, 1u);
  registered.unregister();
  EXPECT_THROW(registered.unregister(), Error);
}

TEST_F(ListenerTest, AFailingCallbackEndsNoListener) {
  ListenerCallbacks failing = recording();
  failing.event = [record = failing.event](const Event& event) {
    record(event);
    throw std::runtime_error("on purpose");
  };
  Listener fails(bus_, clock_, failing);
  Listener works(bus_, clock_, recording());
  fails.listen({.names = {"orders"}});
  works.listen({.names = {"orders"}});
  publish("orders");
  publish("orders");
  EXPECT_EQ(record_.wait_for(4).size(), 4u);
}

TEST_F(ListenerTest, DestroyingOneDoesNotAffectOthers) {
  std::optional<Listener> dies;
  dies.emplace(bus_, clock_, recording());
  Listener stays(bus_, clock_, recording());
  dies->listen({.names = {"orders"}});
  stays.listen({.names = {"orders"}});
  dies.reset();
  EXPECT_EQ(bus_.stats().subscribers, 1u);
  publish("orders");
  EXPECT_THAT(record_.wait_for(1), ElementsAre("updated orders"));
}

TEST_F(ListenerTest, TerminatesBeforeItIsUnregistered) {
  std::size_t subscribers = 0;
  {
    ListenerCallbacks callbacks;
    callbacks.terminate = [&] {
      subscribers = bus_.stats().subscribers;
      publish("orders");  // it is not handled, and does not block
      throw std::runtime_error("on purpose");
    };
    Listener listener(bus_, clock_, callbacks);
    listener.listen({.names = {"orders", "users"}});
  }
  EXPECT_EQ(subscribers, 2u);
  EXPECT_EQ(bus_.stats().subscribers, 0u);
}

TEST_F(ListenerTest, AParentsEndStopsItsListener) {
  struct Parent {
    Parent(Bus& bus, const Clock& clock, ListenerCallbacks callbacks)
        : listener(bus, clock, std::move(callbacks)) {
      listener.listen({.all = true});
    }
    Listener listener;
  };
  auto callbacks = recording();
  callbacks.terminate = [this] { record_.add("terminated"); };
  auto parent = std::make_unique<Parent>(bus_, clock_, callbacks);
  publish("orders");
  EXPECT_THAT(record_.wait_for(1), ElementsAre("updated orders"));
  parent.reset();
  publish("orders");
  EXPECT_THAT(record_.wait_for(2), ElementsAre("updated orders", "terminated"));
  EXPECT_EQ(bus_.stats().published, 1u);
}

/// A manual clock that records the deadline of the current wait.
class DeadlineClock final : public Clock {
 public:
  MonotonicTime now() const override { return clock_.now(); }
  std::int64_t wall_ms() const override { return clock_.wall_ms(); }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    deadlines_.add(fmt::format("{} s", deadline.time_since_epoch() / std::chrono::seconds(1)));
    return clock_.wait_until(lock, changed, deadline, done);
  }
  void advance(Duration by) { clock_.advance(by); }
  Record& deadlines() { return deadlines_; }

 private:
  ManualClock clock_;
  mutable Record deadlines_;
};

TEST_F(ListenerTest, IdleIsCalledWithoutEvents) {
  DeadlineClock clock;
  auto callbacks = recording();
  callbacks.idle_after = std::chrono::minutes(1);
  callbacks.idle = [this] { record_.add("idle"); };
  Listener listener(bus_, clock, callbacks);
  EXPECT_THAT(clock.deadlines().wait_for(1), ElementsAre("60 s"));

  // An event postpones the call. (Registering wakes the listener once, which does not.)
  listener.listen({.names = {"orders"}});
  EXPECT_THAT(clock.deadlines().wait_for(2), ElementsAre("60 s", "60 s"));
  clock.advance(std::chrono::seconds(50));
  publish("orders");
  EXPECT_EQ(clock.deadlines().wait_for(3)[2], "110 s");

  clock.advance(std::chrono::seconds(60));
  EXPECT_EQ(clock.deadlines().wait_for(4).back(), "170 s");
  clock.advance(std::chrono::seconds(60));
  EXPECT_EQ(clock.deadlines().wait_for(5).back(), "230 s");
  EXPECT_THAT(record_.wait_for(3), ElementsAre("updated orders", "idle", "idle"));
}

TEST_F(ListenerTest, RestsAfterItHasHandledAllEvents) {
  DeadlineClock clock;
  const auto never = fmt::format("{} s", MonotonicTime::max().time_since_epoch() / std::chrono::seconds(1));
  auto callbacks = recording();
  callbacks.rest = std::chrono::seconds(5);
  Listener listener(bus_, clock, callbacks);
  listener.listen({.names = {"orders", "users"}});
  publish("orders");
  EXPECT_THAT(record_.wait_for(1), ElementsAre("updated orders"));
  EXPECT_TRUE(clock.deadlines().wait_for_last("5 s"));

  publish("users");
  publish("orders");
  clock.advance(std::chrono::seconds(5));
  EXPECT_TRUE(clock.deadlines().wait_for_last("10 s"));
  // Databases take turns; which is first depends on when the first event's notification arrived.
  EXPECT_THAT(record_.wait_for(3), UnorderedElementsAre("updated orders", "updated orders", "updated users"));

  // Without events it waits for the next one.
  clock.advance(std::chrono::seconds(5));
  EXPECT_TRUE(clock.deadlines().wait_for_last(never));
}

TEST_F(ListenerTest, WithoutAnIdleCallbackItWaitsForEver) {
  DeadlineClock clock;
  const auto never = fmt::format("{} s", MonotonicTime::max().time_since_epoch() / std::chrono::seconds(1));
  auto without_time = recording();
  without_time.idle = [this] { record_.add("idle"); };
  auto without_callback = recording();
  without_callback.idle_after = std::chrono::minutes(1);
  Listener first(bus_, clock, without_time), second(bus_, clock, without_callback);
  EXPECT_THAT(clock.deadlines().wait_for(2), ElementsAre(never, never));
}

TEST_F(ListenerTest, ASlowListenerLearnsHowManyEventsItMissed) {
  std::promise<void> entered, go_on;
  auto callbacks = recording();
  callbacks.event = [&, first = true](const Event&) mutable {
    if (!std::exchange(first, false)) return;
    entered.set_value();
    go_on.get_future().wait();
  };
  Listener listener(bus_, clock_, callbacks);
  listener.listen({.names = {"orders"}});
  publish("orders");
  entered.get_future().wait();
  for (std::size_t i = 0; i < kDefaultMailboxEvents + 7; ++i) publish("orders");
  go_on.set_value();
  EXPECT_THAT(record_.wait_for(1), ElementsAre("lagged(7)"));
}

TEST_F(ListenerTest, MayRegisterAgainFromItsOwnCallback) {
  std::optional<Listener> listener;
  auto callbacks = recording();
  callbacks.event = [&, record = callbacks.event](const Event& event) {
    if (event.database == "orders") listener->listen({.names = {"users"}});
    record(event);
  };
  listener.emplace(bus_, clock_, callbacks);
  listener->listen({.names = {"orders"}});
  publish("orders");
  EXPECT_EQ(record_.wait_for(1).size(), 1u);
  publish("orders");
  publish("users");
  EXPECT_THAT(record_.wait_for(2), ElementsAre("updated orders", "updated users"));
}

TEST_F(ListenerTest, RegistersAgainWhileOthersPublish) {
  std::atomic<bool> done = false;
  Listener listener(bus_, clock_, recording());
  std::thread publisher([&] {
    while (!done) {
      publish("a");
      publish("b");
    }
  });
  for (int i = 0; i < 200; ++i) {
    listener.listen({.all = i % 3 == 0, .names = {i % 2 == 0 ? "a" : "b"}});
    if (i % 10 == 9) listener.unregister();
  }
  done = true;
  publisher.join();
  listener.listen({.names = {"c"}});
  publish("c", DatabaseEvent::created);
  const auto ends_with_c = [&] {
    std::size_t count = 1;
    for (auto texts = record_.wait_for(count); !texts.empty(); texts = record_.wait_for(++count)) {
      if (texts.back() == "created c") return true;
      if (texts.size() < count) return false;
      count = texts.size();
    }
    return false;
  };
  EXPECT_TRUE(ends_with_c());
}

}  // namespace
}  // namespace divan::events
