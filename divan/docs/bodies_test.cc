#include "divan/docs/bodies.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

struct Bodies : DocsTest {
  // Writes documents in this order, in one transaction.
  void write(const std::vector<int>& numbers) {
    std::vector<IncomingDocument> documents;
    for (const int number : numbers) {
      const std::string text(number % 7 == 3 ? 150'000 : number % 5, 'x');  // some have several chunks
      documents.push_back(parse_document(
          number % 11 == 5 ? fmt::format(R"({{"_id":"{:04}"}})", number)
                           : fmt::format(R"({{"_id":"{:04}","n":{},"text":"{}"}})", number, number, text)));
    }
    for (const auto& result : bulk_edit(*store, catalog, "db", documents, rng)) ASSERT_FALSE(result.error);
  }

  // The winners of every `step`th document.
  std::vector<Leaf> winners(kv::Transaction& tx, const Database& db, std::size_t step) {
    std::vector<Leaf> found;
    std::size_t number = 0;
    visit_documents(tx, db, {}, [&](const std::string&, const Leaf& winner) {
      if (number++ % step == 0) found.push_back(winner);
      return true;
    });
    return found;
  }

  void check(std::size_t step) {
    with_db([&](kv::Transaction& tx, const Database& db) {
      const auto leaves = winners(tx, db, step);
      const auto bodies = read_bodies(tx, db, leaves);
      ASSERT_EQ(bodies.size(), leaves.size());
      for (std::size_t i = 0; i < leaves.size(); ++i)
        ASSERT_EQ(bodies[i], read_body(tx, db, leaves[i])) << "document " << i << " of every " << step;
    });
  }
};

TEST_F(Bodies, AreThoseOfSingleReads) {
  std::vector<int> in_order, shuffled;
  for (int number = 0; number < 150; ++number) in_order.push_back(number);
  for (int number = 150; number < 300; ++number) shuffled.push_back(number);
  std::ranges::sort(shuffled, {}, [](int number) { return number * 7919 % 1009; });
  write(in_order);
  write(shuffled);
  for (const std::size_t step : {1, 2, 5, 20, 100, 300}) check(step);
  with_db([&](kv::Transaction& tx, const Database& db) {
    EXPECT_TRUE(read_bodies(tx, db, std::vector<Leaf>()).empty());
  });
}

TEST_F(Bodies, AMissingOneIsAnError) {
  std::vector<int> numbers;
  for (int number = 0; number < 40; ++number) numbers.push_back(number);
  write(numbers);
  for (const std::size_t damaged : {std::size_t{0}, std::size_t{18}, std::size_t{39}}) {
    const auto tx = store->begin();  // not committed
    const auto db = catalog.open(*tx, "db");
    const auto leaves = winners(*tx, db, 1);
    ASSERT_EQ(leaves[damaged].chunks, 1u);
    tx->clear(db.keys().body(leaves[damaged].sequence, 0));
    EXPECT_THROW(read_bodies(*tx, db, leaves), Error) << damaged;
  }
}

}  // namespace
}  // namespace divan::docs
