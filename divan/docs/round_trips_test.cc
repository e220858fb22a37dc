// The number of round trips to a remote store that operations on documents take.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/kv/remote_testing.h"

namespace divan::docs {
namespace {

// On a store that counts round trips, and on a cluster if there is one.
class DocumentRoundTrips : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !kv::fdb::test_cluster_file()) GTEST_SKIP() << kv::fdb::kNoTestCluster;
    counted.emplace(GetParam(), clock);
    store().run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }

  kv::Database& store() { return **counted; }
  template <class Fn>
  std::uint64_t of(Fn&& fn) {
    return counted->round_trips_of(fn);
  }
  testing::Matcher<std::uint64_t> takes(std::uint64_t trips) const { return counted->takes(trips); }
  std::vector<IncomingDocument> documents(int from, int to, std::size_t bytes) {
    std::vector<IncomingDocument> all;
    for (int i = from; i < to; ++i)
      all.push_back(
          parse_document(fmt::format(R"({{"_id":"d{}","text":"{}"}})", i, std::string(bytes, 'x'))));
    return all;
  }
  void write(std::vector<IncomingDocument> all) {
    for (const auto& result : bulk_edit(store(), catalog, "db", all, rng)) EXPECT_FALSE(result.error);
  }
  void read(std::string_view id) {
    store().run([&](kv::Transaction& tx) {
      prefetch_document(tx, catalog, "db", id);
      find_document(tx, catalog.open(tx, "db"), id, std::nullopt);
    });
  }

  SystemClock clock;
  SeededRng rng{1};
  events::Bus bus;
  Catalog catalog{bus, clock};
  std::optional<kv::testing::CountedStore> counted;
};

TEST_P(DocumentRoundTrips, AWriteTakesTwo) {
  EXPECT_THAT(of([&] { write(documents(0, 1, 10)); }), takes(2));
}

TEST_P(DocumentRoundTrips, AReadTakesTwo) {
  write(documents(0, 1, 10));
  EXPECT_THAT(of([&] { read("d0"); }), takes(2));
  // The chunks of a large body take one round trip.
  write(documents(1, 2, 1'000'000));
  EXPECT_THAT(of([&] { read("d1"); }), takes(2));
}

TEST_P(DocumentRoundTrips, WithoutACachedDatabaseOneMore) {
  write(documents(0, 1, 10));
  Catalog other(bus, clock);
  EXPECT_THAT(of([&] {
                store().run([&](kv::Transaction& tx) {
                  prefetch_document(tx, other, "db", "d0");
                  find_document(tx, other.open(tx, "db"), "d0", std::nullopt);
                });
              }),
              takes(3));
}

TEST_P(DocumentRoundTrips, AThousandWritesTakeAtMostEight) {
  EXPECT_LE(of([&] { write(documents(0, 1000, 200)); }), 8u);
}

INSTANTIATE_TEST_SUITE_P(Stores, DocumentRoundTrips, testing::Bool(),
                         [](const auto& one) { return one.param ? "fdb" : "counted"; });

}  // namespace
}  // namespace divan::docs
