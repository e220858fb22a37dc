// The changes of a database and their bodies.
#include <fmt/core.h>

#include <algorithm>

#include "divan/docs/sequence.h"
#include "divan/docs/testing.h"
#include "divan/kv/counting_testing.h"

namespace divan::docs {
namespace {

struct Changes : DocsTest {};

TEST_F(Changes, ChangesHaveOneRowPerDocumentInTheOrderOfItsLastChange) {
  const auto rev = put(R"({"_id":"a"})");
  put(R"({"_id":"b"})");
  put(R"({"_id":"a","_rev":")" + rev + R"(","n":1})");
  const auto all = changes();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "b");
  EXPECT_EQ(all[1].id, "a");
  EXPECT_LT(all[0].sequence, all[1].sequence);
  EXPECT_EQ(info().update_seq, all[1].sequence);
  EXPECT_EQ(parse_sequence(to_sequence(all[1].sequence)), all[1].sequence);
  with_db([&](auto& tx, const Database& db) {
    EXPECT_EQ(count_changes(tx, db, {}, 100), 2);
    EXPECT_EQ(count_changes(tx, db, all[0].sequence, 100), 1);
    EXPECT_EQ(count_changes(tx, db, {}, 1), 1);
  });
}

TEST_F(Changes, AChangeToALosingRevisionMovesTheDocumentButKeepsItsWinner) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["z","r"]},"v":"winner"})"});
  replicate({R"({"_id":"b","_rev":"1-x","v":"other"})"});
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"loser"})"});
  const auto all = changes();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, "b");
  EXPECT_EQ(all[1].id, "a");
  EXPECT_EQ(all[1].winner.to_string(), "2-z");
  const auto bodies = with_db([&](auto& tx, const Database& db) { return read_bodies(tx, db, all); });
  EXPECT_EQ(bodies, (std::vector<std::string>{R"({"v":"other"})", R"({"v":"winner"})"}));
}

TEST_F(Changes, BodiesAreReadUpToTheLimit) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["z","r"]},"v":"winner"})"});
  for (const std::string id : {"b", "c", "d"}) put(R"({"_id":")" + id + R"(","t":")" + id + "\"}");
  put(R"({"_id":"e","t":")" + std::string(200'000, 'e') + "\"}");
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"loser"})"});
  const auto all = changes();  // b c d e a
  const auto count = [&](std::size_t max_bytes) {
    return with_db([&](auto& tx, const Database& db) {
      const auto bodies = read_bodies(tx, db, all, max_bytes);
      for (std::size_t i = 0; i < bodies.size() && i < 3; ++i) {
        EXPECT_EQ(bodies[i], R"({"t":")" + all[i].id + "\"}");
      }
      if (bodies.size() > 3) { EXPECT_EQ(bodies[3].size(), 200'008u); }
      if (bodies.size() > 4) { EXPECT_EQ(bodies[4], R"({"v":"winner"})"); }
      return bodies.size();
    });
  };
  EXPECT_EQ(count(1), 1u);
  EXPECT_EQ(count(9), 1u);
  EXPECT_EQ(count(10), 2u);
  EXPECT_EQ(count(27), 3u);
  EXPECT_EQ(count(28), 4u);
  EXPECT_EQ(count(200'034), 4u);
  EXPECT_EQ(count(200'036), 5u);
  EXPECT_EQ(count(SIZE_MAX), 5u);
}

// Forwards and backwards, wherever the documents' bodies are, and however many bytes are requested.
TEST_F(Changes, BodiesAreReadInTheOrderOfTheChanges) {
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["z","r"]},"v":"winner"})"});
  put(R"({"_id":"b","t":"b"})");
  put(R"({"_id":"empty"})");
  put(R"({"_id":"large","t":")" + std::string(250'000, 'l') + std::string(50'000, 'm') + "\"}");
  const auto gone = put(R"({"_id":"gone","t":"gone"})");
  put(R"({"_id":"c","t":"c"})");
  put(R"({"_id":"gone","_rev":")" + gone + R"(","_deleted":true})");
  replicate({R"({"_id":"a","_revisions":{"start":2,"ids":["c","r"]},"v":"loser"})"});
  put(R"({"_id":"d","t":"d"})");
  auto all = changes();
  for (const bool reverse : {false, true}) {
    if (reverse) std::reverse(all.begin(), all.end());
    with_db([&](auto& tx, const Database& db) {
      std::vector<std::string> one_by_one;
      for (const auto& change : all)
        one_by_one.push_back(read_body(tx, db, change.body_sequence, change.chunks));
      for (const std::size_t max_bytes : {1u, 12u, 30u, 300'000u, 1'000'000u}) {
        for (std::size_t first = 0; first < all.size(); ++first) {
          const auto bodies = read_bodies(tx, db, std::span(all).subspan(first), max_bytes);
          std::size_t bytes = 0;
          for (std::size_t i = 0; i < bodies.size(); ++i) {
            EXPECT_LT(bytes, max_bytes);
            EXPECT_EQ(bodies[i], one_by_one[first + i]) << all[first + i].id;
            bytes += bodies[i].size();
          }
          EXPECT_TRUE(bytes >= max_bytes || first + bodies.size() == all.size());
        }
      }
    });
  }
}

// A filter may select few of many documents.
TEST_F(Changes, UnwantedBodiesAreNotReadToTheEnd) {
  const int kDocuments = 40;
  for (int i = 0; i < kDocuments; ++i)
    put(fmt::format(R"({{"_id":"{:02}","t":"{}"}})", i, std::string(100'000, 'x')));  // two chunks each
  const auto all = changes();
  std::vector<Change> wanted = {all[0], all[1], all[20], all[39]};
  kv::testing::CountingStore counting(*store);
  for (const bool reverse : {false, true}) {
    if (reverse) std::ranges::reverse(wanted);
    const int before = counting.rows_read;
    counting.run([&](kv::Transaction& tx) {
      const auto bodies = read_bodies(tx, catalog.open(tx, "db"), wanted);
      EXPECT_THAT(bodies, testing::Each(testing::SizeIs(100'008)));
    });
    EXPECT_LT(counting.rows_read - before, 20);
  }
}

TEST_F(Changes, InvalidSequencesAreRejected) {
  for (const std::string_view text :
       {"", "x", "-1", "1-", "1-zz", "1-00000000000000020000ffff", "1x-", "now"}) {
    EXPECT_THAT(error_of([&] { parse_sequence(text); }), testing::HasSubstr("Malformed sequence")) << text;
  }
  EXPECT_EQ(parse_sequence("0"), kv::Versionstamp());
  EXPECT_LT(parse_sequence("6-000000000000000600000001"), parse_sequence("6"));
  EXPECT_LT(parse_sequence("6"), parse_sequence("7-000000000000000700000000"));
}

TEST_F(Changes, DamagedRowsAreRejected) {
  std::string key;
  kv::tuple::Packer(key).versionstamp(*kv::Versionstamp::from_bytes(std::string(12, '\1')));
  const auto put_change = [&](std::int64_t generation, std::int64_t chunks,
                              std::optional<std::int64_t> others) {
    std::string value;
    kv::tuple::Packer row(value);
    row.string("a").boolean(false).integer(generation).bytes("r").integer(0).integer(chunks);
    if (others) row.integer(*others);
    with_db([&](auto& tx, const Database& db) { tx.set(db.keys().section(Section::changes) + key, value); });
  };
  put_change(1, kMaxBodyChunks, {});
  ASSERT_EQ(changes().size(), 1u);
  EXPECT_EQ(changes()[0].other_leaves, std::nullopt);
  put_change(1, 0, UINT32_MAX);
  ASSERT_EQ(changes().size(), 1u);
  EXPECT_EQ(changes()[0].other_leaves, UINT32_MAX);
  using Numbers = std::tuple<std::int64_t, std::int64_t, std::optional<std::int64_t>>;
  for (const auto& [generation, chunks, others] :
       {Numbers{UINT32_MAX + std::int64_t{1}, 0, {}}, Numbers{0, 0, {}}, Numbers{1, -1, {}},
        Numbers{1, kMaxBodyChunks + std::int64_t{1}, {}}, Numbers{1, 0, -1},
        Numbers{1, 0, UINT32_MAX + std::int64_t{1}}}) {
    put_change(generation, chunks, others);
    EXPECT_THROW(changes(), Error) << generation << ", " << chunks << ", " << others.value_or(0);
  }
}

}  // namespace
}  // namespace divan::docs
