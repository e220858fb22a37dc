#include "divan/base/striped.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace divan {
namespace {

TEST(StripedCounter, SumsTheAdditionsOfAllThreads) {
  StripedCounter counter;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= 2 * kStripes; ++i) {
    threads.emplace_back([&counter, i] {
      for (int n = 0; n < 100; ++n) counter.add(i);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter.total(), 100 * kStripes * (2 * kStripes + 1));
}

TEST(ReaderGate, AWriterWaitsForAReaderThatIsInside) {
  for (int reader = 0; reader < static_cast<int>(2 * kStripes); ++reader) {
    ReaderGate gate;
    std::promise<void> inside, leave;
    std::atomic<bool> left = false;
    std::thread thread([&] {
      const auto section = gate.enter();
      inside.set_value();
      leave.get_future().wait();
      left = true;
    });
    inside.get_future().wait();
    std::thread releaser([&] {
      for (int i = 0; i < 100; ++i) std::this_thread::yield();
      leave.set_value();
    });
    gate.wait_for_readers();
    EXPECT_TRUE(left);
    thread.join();
    releaser.join();
  }
}

TEST(ReaderGate, OverlappingReadersDoNotBlockAWriter) {
  ReaderGate gate;
  std::atomic<bool> written = false;
  std::promise<void> inside;
  std::thread reader([&] {
    auto section = gate.enter();
    inside.set_value();
    while (!written) section = gate.enter();  // the next one begins before the last one ends
  });
  inside.get_future().wait();
  gate.wait_for_readers();
  written = true;
  reader.join();
}

TEST(ReaderGate, APartIsNotDestroyedWhileAReaderUsesIt) {
  struct Value {
    std::atomic<int> alive{1};
    ~Value() { alive = 0; }
  };
  ReaderGate gate;
  std::atomic<Value*> published{new Value};
  std::atomic<bool> done = false;
  std::atomic<int> dead_values_seen = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto section = gate.enter();
        const Value* value = published.load();
        std::this_thread::yield();
        if (value->alive != 1) ++dead_values_seen;
      }
    });
  }
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        Value* old = published.exchange(new Value);
        gate.wait_for_readers();
        delete old;
      }
    });
  }
  for (auto& writer : writers) writer.join();
  done = true;
  for (auto& reader : readers) reader.join();
  delete published.load();
  EXPECT_EQ(dead_values_seen, 0);
}

}  // namespace
}  // namespace divan
