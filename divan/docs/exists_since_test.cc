// Since when a document exists, as its leaves say.
#include <fmt/core.h>

#include "divan/docs/compaction.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/purge.h"
#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

struct ExistsSince : DocsTest {
  Leaf winner() {
    return with_db([](auto& tx, const Database& db) { return read_tree(tx, db, "a").at(0); });
  }
  std::string write(const std::string& members = "") {
    const std::string rev = last_.empty() ? "" : fmt::format(R"(,"_rev":"{}")", last_);
    return last_ = put(fmt::format(R"({{"_id":"a"{}{}}})", rev, members));
  }
  void remove() {
    write(R"(,"_deleted":true)");
    last_.clear();
  }
  void compact_all() {
    while (!with_db([](auto& tx, const Database& db) { return compact(tx, db); }).is_last) {}
  }

 private:
  std::string last_;
};

TEST_F(ExistsSince, IsKeptByUpdatesAndByTheDeletion) {
  write();
  const auto created = winner().sequence;
  EXPECT_EQ(winner().exists_since, created);
  for (int i = 0; i < 15; ++i) write(fmt::format(R"(,"n":{})", i));
  EXPECT_EQ(winner().exists_since, created);
  compact_all();
  write();
  EXPECT_EQ(winner().exists_since, created);
  remove();
  EXPECT_EQ(winner().exists_since, created);
}

TEST_F(ExistsSince, BeginsAgainAfterADeletion) {
  write();
  remove();
  const auto deleted = winner().sequence;
  write(R"(,"n":1)");
  const auto again = winner();
  EXPECT_GT(again.sequence, deleted);
  EXPECT_EQ(again.exists_since, again.sequence);
  write(R"(,"n":2)");
  EXPECT_EQ(winner().exists_since, again.sequence);
  // A deletion of a deleted document ends nothing.
  remove();
  replicate({R"({"_id":"a","_rev":"9-f","_deleted":true})"});
  EXPECT_EQ(winner().exists_since, winner().sequence);
}

TEST_F(ExistsSince, OfReplicatedRevisions) {
  replicate({R"({"_id":"a","_rev":"5-e","_revisions":{"start":5,"ids":["e","d"]}})"});
  const auto created = winner().sequence;
  EXPECT_EQ(winner().exists_since, created);
  replicate({R"({"_id":"a","_rev":"7-f"})"});  // another branch
  EXPECT_EQ(winner().revision().generation, 7u);
  EXPECT_EQ(winner().exists_since, created);
  replicate({R"({"_id":"a","_rev":"3-1"})", R"({"_id":"a","_rev":"8-1"})"});
  EXPECT_EQ(winner().exists_since, created);
}

TEST_F(ExistsSince, SeveralNewBranchesAtOnce) {
  replicate({R"({"_id":"a","_rev":"3-1"})", R"({"_id":"a","_rev":"4-1"})", R"({"_id":"a","_rev":"2-1"})"});
  EXPECT_EQ(winner().exists_since, winner().sequence);
}

TEST_F(ExistsSince, IsKeptWhenAPurgeRenewsTheWinner) {
  write();
  const auto created = winner().sequence;
  replicate({R"({"_id":"a","_rev":"5-b"})"});
  with_db([](auto& tx, const Database& db) {
    Writer writer(tx, db);
    writer.purge("a", {Revision{5, "b"}});
    writer.finish();
    return 0;
  });
  EXPECT_EQ(winner().revision().generation, 1u);
  EXPECT_GT(winner().sequence, created);
  EXPECT_EQ(winner().exists_since, created);
}

TEST(LeafRow, OfAnOlderVersionDoesNotSaySinceWhen) {
  const auto decode = [](std::int64_t generation, std::string_view rest) {
    std::string key;
    kv::tuple::Packer(key).integer(1).integer(generation).bytes("x");
    const auto sequence = kv::Versionstamp::complete(std::string(10, '\1'));
    return decode_leaf(kv::tuple::Reader(key), std::string(sequence.bytes()) + std::string(rest));
  };
  EXPECT_EQ(decode(2, std::string("\0\2\1\1y", 5)).exists_since, kv::Versionstamp());
  const Leaf first = decode(1, std::string("\0\2\0", 3));
  EXPECT_EQ(first.exists_since, first.sequence);
}

}  // namespace
}  // namespace divan::docs
