#include "divan/events/deletion_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace divan::events {
namespace {

TEST(DeletionWatch, CallsForTheDeletionOfItsDatabaseOnly) {
  Bus bus;
  int calls = 0;
  {
    const DeletionWatch watch(bus, "db", [&] { ++calls; });
    publish_database_event(bus, "db", DatabaseEvent::updated);
    publish_database_event(bus, "other", DatabaseEvent::deleted);
    EXPECT_EQ(calls, 0);
    publish_database_event(bus, "db", DatabaseEvent::deleted);
    EXPECT_EQ(calls, 1);
  }
  publish_database_event(bus, "db", DatabaseEvent::deleted);
  EXPECT_EQ(calls, 1);
}

// A build ends, and its watch with it, while the database is updated.
TEST(DeletionWatch, EndsWhileEventsArePublished) {
  Bus bus;
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  std::vector<std::thread> publishers;
  for (int i = 0; i < 3; ++i) {
    publishers.emplace_back([&] {
      while (!stop) publish_database_event(bus, "db", DatabaseEvent::deleted);
    });
  }
  for (int i = 0; i < 100'000; ++i) {
    bool exists = true;
    {
      const DeletionWatch watch(bus, "db", [&] {
        EXPECT_TRUE(exists);
        ++calls;
      });
    }
    exists = false;
  }
  while (calls == 0) {
    const DeletionWatch watch(bus, "db", [&] { ++calls; });
    std::this_thread::yield();
  }
  stop = true;
  for (auto& publisher : publishers) publisher.join();
}

}  // namespace
}  // namespace divan::events
