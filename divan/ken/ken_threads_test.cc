#include "divan/ken/testing.h"

namespace divan::ken {
namespace {

// With its thread, and events.
struct KenThreadTest : KenTest {
  void wait_for(const std::function<bool()>& done) {
    for (int i = 0; i < 60'000 && !done(); ++i) {
      clock.advance(milliseconds(1));
      real.sleep(milliseconds(1));
    }
    EXPECT_TRUE(done());
  }
  void publish(events::DatabaseEvent event) { events::publish_database_event(bus, "db", event, "_design/1"); }
};

TEST_F(KenThreadTest, NoticesChangesAndWhatChangedBeforeItStarted) {
  put_design(1);
  ken->start();
  wait_for([&] { return pending().size() == 1; });
  put_design(2);
  wait_for([&] { return pending().size() == 2; });
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  wait_for([&] { return all_jobs().empty(); });
}

// Case 11: this event alone, and each shard's database must be scanned.
TEST_F(KenThreadTest, ADesignDocumentsChangeAddsTheDatabase) {
  ken->start();
  put_design(1);
  wait_for([&] { return pending().size() == 1; });
  std::atomic<int> reads = 0;
  wait_for([&] { return ken->status().queue.empty() && !ken->status().scanning; });
  kind->on_read = [&](const std::string&) { ++reads; };
  publish(events::DatabaseEvent::local_updated);
  publish(events::DatabaseEvent::ddoc_updated);
  wait_for([&] { return reads == 1; });
  ken.reset();
}

TEST_F(KenThreadTest, AWatchNotifiesOfAFreeChannel) {
  config.override_with("ken", "limit", "1");
  put_design(1);
  put_design(2);
  ken->start();
  wait_for([&] { return pending().size() == 1 && !ken->status().retries.empty(); });
  const auto before = clock.now();
  build(accept().at(0));
  // Only the time between scans passes: neither a sweep nor a minute.
  for (int i = 0; i < 60'000 && pending().empty(); ++i) {
    if (clock.now() - before < milliseconds(100)) clock.advance(milliseconds(1));
    real.sleep(milliseconds(1));
  }
  EXPECT_EQ(pending().size(), 1u);
}

}  // namespace
}  // namespace divan::ken
