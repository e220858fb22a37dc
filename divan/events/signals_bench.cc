// Compares the bus with Boost.Signals2, the usual library for this purpose, used as in its documentation: one
// signal per channel, slots held by scoped connections. Each slot has a bounded mailbox for shared events, as
// the bus's subscribers have. Slots are not tracked, which would cost Signals2 more. Each benchmark is named
// after its counterpart in bus_bench.cc, prefixed with Signal.
#include <benchmark/benchmark.h>

#include <atomic>
#include <boost/signals2.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "divan/events/mailbox.h"

namespace divan::events {
namespace {

using Signal = boost::signals2::signal<void(const EventPtr&)>;

EventPtr make_event() { return std::make_shared<const Event>(Event{"updated", "orders", {}, {}}); }

// A slot may still run after its connection has ended, so it shares the mailbox.
boost::signals2::connection connect(Signal& signal) {
  return signal.connect([mailbox = std::make_shared<Mailbox>(0, SubscribeOptions())](const EventPtr& event) {
    if (mailbox->put(event).notify) mailbox->notify();
  });
}

/// One signal for all threads of a benchmark, with `count` slots whose mailboxes are never read.
class Setup {
 public:
  explicit Setup(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) connections_.emplace_back(connect(orders));
  }

  Signal orders;

 private:
  std::vector<boost::signals2::scoped_connection> connections_;
};

/// Keeps connecting to the signal and leaving it.
class Churn {
 public:
  explicit Churn(Signal& signal)
      : thread_([this, &signal] {
          while (!done_) const boost::signals2::scoped_connection connection(connect(signal));
        }) {}
  ~Churn() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

/// The event is created for every call, as a signal's argument is.
void BM_Signal(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(state.range(0));
  for (auto _ : state) setup->orders(make_event());
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_Signal)
    ->ArgName("subscribers")
    ->Arg(0)
    ->Arg(1)
    ->Arg(8)
    ->Arg(64)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

/// No slots, and the event exists already: the cost of the call alone.
void BM_SignalWithoutMakingTheEvent(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  static const EventPtr event = make_event();
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(0);
  for (auto _ : state) setup->orders(event);
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_SignalWithoutMakingTheEvent)->Threads(1)->Threads(2)->UseRealTime();

/// No slots, and the caller checks empty() first, which locks in Signals2.
void BM_SignalThatIsEmpty(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  if (state.thread_index() == 0) setup = std::make_unique<Setup>(0);
  for (auto _ : state) {
    if (!setup->orders.empty()) setup->orders(make_event());
  }
  if (state.thread_index() == 0) setup.reset();
}
BENCHMARK(BM_SignalThatIsEmpty)->Threads(1)->Threads(2)->UseRealTime();

void BM_SignalUnderChurn(benchmark::State& state) {
  static std::unique_ptr<Setup> setup;
  static std::unique_ptr<Churn> churn;
  if (state.thread_index() == 0) {
    setup = std::make_unique<Setup>(state.range(0));
    churn = std::make_unique<Churn>(setup->orders);
  }
  for (auto _ : state) setup->orders(make_event());
  if (state.thread_index() == 0) {
    churn.reset();
    setup.reset();
  }
}
BENCHMARK(BM_SignalUnderChurn)->ArgName("subscribers")->Arg(8)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace divan::events
