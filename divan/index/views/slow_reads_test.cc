// Batches whose comparison with the store takes longer than a transaction may last.
#include <gtest/gtest.h>

#include "divan/docs/catalog.h"
#include "divan/index/views/view_batch.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/forwarding.h"

namespace divan::index::views {
namespace {

// Every read of several keys takes three seconds.
class SlowStore final : public kv::ForwardingDatabase {
 public:
  SlowStore(kv::Database& inner, ManualClock& clock) : ForwardingDatabase(inner), clock_(clock) {}

  std::unique_ptr<kv::Transaction> begin() override {
    return std::make_unique<Slow>(inner().begin(), clock_);
  }

 private:
  class Slow final : public kv::ForwardingTransaction {
   public:
    Slow(std::unique_ptr<kv::Transaction> inner, ManualClock& clock)
        : ForwardingTransaction(std::move(inner)), clock_(clock) {}
    std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                     kv::Isolation isolation) override {
      auto values = ForwardingTransaction::get_many(keys, isolation);
      clock_.advance(std::chrono::seconds(3));
      return values;
    }

   private:
    ManualClock& clock_;
  };

  ManualClock& clock_;
};

constexpr int kRows = 1000;

ViewBatch batch_of(int changed_row) {
  ViewBatch batch(1);
  batch.add_document("d");
  for (int i = 0; i < kRows; ++i)
    batch.add_row(0, 0, std::to_string(i), i == changed_row ? "\"new\"" : "\"old\"");
  return batch;
}

TEST(SlowReads, UnchangedRowsAreFoundEvenIfReadsAreSlow) {
  ManualClock clock;
  kv::embedded::TemporaryStore store(&clock);
  events::Bus bus;
  docs::Catalog catalog(bus, clock);
  const IndexKeys keys(docs::Database(catalog, "db", 1, 0), std::string(16, 's'));
  ViewBatch first = batch_of(-1);
  ASSERT_EQ(first.prepare(*store, keys, 0, {}), 1u);
  store->run([&](kv::Transaction& tx) { first.write(tx, keys); });

  SlowStore slow(*store, clock);
  ViewBatch again = batch_of(kRows - 1);
  ASSERT_EQ(again.prepare(slow, keys, 0, {}), 1u);
  const auto tx = store->begin();
  again.write(*tx, keys);
  EXPECT_LT(tx->approximate_size(), 2000u) << "more than one row is written";
  tx->commit();
  std::string values;
  store->run([&](kv::Transaction& read) {
    values.clear();
    visit_rows(read, keys, 0, all_rows(keys, 0), true, [&](const ViewRow& row) {
      values += row.value;
      return values.size() < 10;
    });
  });
  EXPECT_EQ(values, "\"new\"\"old\"");
}

}  // namespace
}  // namespace divan::index::views
