// The cost of publishing: without subscribers (which must be nearly free), with few and many subscribers,
// next to a subscriber that never reads, and while channels are created and removed.
#include "divan/events/bus.h"

#include <benchmark/benchmark.h>

#include <thread>
#include <vector>

#include "divan/events/database_events.h"

namespace divan::events {
namespace {

Event make_event() { return {"updated", "orders", {}, {}}; }

/// One bus for all threads of a benchmark, with `count` subscribers to "orders" whose mailboxes are drained
/// periodically.
class Setup {
 public:
  explicit Setup(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) subscriptions_.push_back(bus.subscribe("orders"));
    other_ = bus.subscribe("other");
  }

  Bus bus;
  const Publisher orders = bus.publisher("orders");

 private:
  std::vector<Subscription> subscriptions_;
  Subscription other_;
};

/// Keeps creating and removing the channel "orders" and a hundred others, as long polls do.
class Churn {
 public:
  explicit Churn(Bus& bus)
      : thread_([this, &bus] {
          for (int i = 0; !done_; ++i) {
            const auto a = bus.subscribe("orders"), b = bus.subscribe(std::to_string(i % 100));
          }
        }) {}
  ~Churn() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

void BM_ByHandle(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(state.range(0));
  for (auto _ : state) setup->orders.publish(make_event);
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_ByHandle)->ArgName("subscribers")->Arg(0)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(BM_ByHandle)
    ->ArgName("subscribers")
    ->Arg(1)
    ->Arg(8)
    ->Arg(64)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

void BM_ByName(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(state.range(0));
  for (auto _ : state) setup->bus.publish("orders", make_event);
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_ByName)->ArgName("subscribers")->Arg(0)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(BM_ByName)->ArgName("subscribers")->Arg(1)->Arg(8)->Arg(64)->Threads(1)->Threads(2)->UseRealTime();

void BM_ByNameWithoutAChannel(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(0);
  for (auto _ : state) setup->bus.publish("no channel", make_event);
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_ByNameWithoutAChannel)->Threads(1)->Threads(2)->UseRealTime();

void BM_TwoThreadsOnChannelsOfTheirOwn(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(1);
  const std::string_view name = state.thread_index() == 0 ? "orders" : "other";
  for (auto _ : state) setup->bus.publish(name, make_event);
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_TwoThreadsOnChannelsOfTheirOwn)->Threads(1)->Threads(2)->UseRealTime();

/// A subscriber that never reads (1) must cost about the same as one that reads each event at once (0).
void BM_BesideAStalledSubscriber(benchmark::State& state) {
  Setup setup(0);
  auto subscription = setup.bus.subscribe("orders");
  const bool reads = state.range(0) == 0;
  for (auto _ : state) {
    setup.orders.publish(make_event);
    if (reads) benchmark::DoNotOptimize(subscription.try_next());
  }
}
BENCHMARK(BM_BesideAStalledSubscriber)->ArgName("stalled")->Arg(0)->Arg(1);

void BM_WithCallback(benchmark::State& state) {
  Bus bus;
  const auto orders = bus.publisher("orders");
  Subscription subscription;
  subscription =
      bus.subscribe("orders", {.notify = [&] { benchmark::DoNotOptimize(subscription.try_next()); }});
  for (auto _ : state) orders.publish(make_event);
}
BENCHMARK(BM_WithCallback);

void BM_ByNameUnderChurn(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  static std::unique_ptr<Churn> churn;
  if (state.thread_index() == 0) {
    setup = std::make_unique<Setup>(0);
    churn = std::make_unique<Churn>(setup->bus);
  }
  for (auto _ : state) setup->bus.publish("orders", make_event);
  if (state.thread_index() == 0) {
    churn.reset();
    setup.reset();
  }
}
BENCHMARK(BM_ByNameUnderChurn)->Threads(1)->Threads(2)->UseRealTime();

/// Subscribers of one channel come and go next to those that stay: the counterpart of BM_SignalUnderChurn.
void BM_ByHandleUnderChurn(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  static std::atomic<bool> done;
  static std::thread churn;
  if (state.thread_index() == 0) {
    setup = std::make_unique<Setup>(state.range(0));
    done = false;
    churn = std::thread([] {
      while (!done) const auto subscription = setup->bus.subscribe("orders");
    });
  }
  for (auto _ : state) setup->orders.publish(make_event);
  if (state.thread_index() == 0) {
    done = true;
    churn.join();
    setup.reset();
  }
}
BENCHMARK(BM_ByHandleUnderChurn)->ArgName("subscribers")->Arg(8)->Threads(1)->Threads(2)->UseRealTime();

/// A channel is created and removed, as by a long poll, next to `channels` others.
void BM_SubscribeAndLeave(benchmark::State& state) {
  Bus bus;
  std::vector<Subscription> others;
  for (std::int64_t i = 0; i < state.range(0); ++i) others.push_back(bus.subscribe(std::to_string(i)));
  for (auto _ : state) benchmark::DoNotOptimize(bus.subscribe("orders"));
}
BENCHMARK(BM_SubscribeAndLeave)->ArgName("channels")->Arg(0)->Arg(10'000)->Arg(100'000);

void BM_DatabaseEvent(benchmark::State& state) {
  Bus bus;
  std::vector<Subscription> listeners;
  if (state.range(0) > 0) listeners.push_back(bus.subscribe(database_channel("orders")));
  if (state.range(0) > 1) listeners.push_back(bus.subscribe(all_databases_channel()));
  for (auto _ : state) publish_database_event(bus, "orders", DatabaseEvent::updated);
}
BENCHMARK(BM_DatabaseEvent)->ArgName("listeners")->Arg(0)->Arg(1)->Arg(2);

}  // namespace
}  // namespace divan::events
