#include "divan/docs/reader.h"

#include "divan/base/bytes.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

std::string packed_leaf(std::int64_t live, std::int64_t generation, std::string_view id) {
  std::string key;
  kv::tuple::Packer(key).integer(live).integer(generation).bytes(id);
  return key;
}

TEST(DamagedRows, DamagedLeavesAreRejected) {
  const std::string sequence(12, '\0');
  const std::string key = packed_leaf(1, 3, "a");
  const auto decode = [](std::string_view row_key, std::string_view value) {
    return decode_leaf(kv::tuple::Reader(row_key), value);
  };
  const std::string good = sequence + std::string(
                                          "\x01\x07\x02\x01"
                                          "b\x01"
                                          "c",
                                          7);
  EXPECT_EQ(decode(key, good).path.ids, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(encode_leaf(decode(key, good)), good);
  EXPECT_THROW(decode(key, good + "x"), Error);
  EXPECT_THROW(decode(key, good.substr(0, good.size() - 1)), Error);
  EXPECT_THROW(decode(key + "x", good), Error);
  EXPECT_THROW(decode(key, std::string(12, '\xff') + good.substr(12)), Error) << "of no commit yet";
  const auto with_body = [&](std::uint64_t chunks, std::uint64_t bytes) {
    std::string value = sequence;
    append_varint(value, chunks);
    append_varint(value, bytes);
    return value + '\0';
  };
  // As many ancestors as generations; an invalid generation.
  EXPECT_THROW(decode(packed_leaf(1, 2, "a"), good), Error);
  EXPECT_THROW(decode(packed_leaf(1, 0, "a"), with_body(1, 7)), Error);
  EXPECT_EQ(decode(packed_leaf(1, UINT32_MAX, "a"), good).path.generation, UINT32_MAX);
  EXPECT_THROW(decode(packed_leaf(1, std::int64_t{UINT32_MAX} + 1, "a"), good), Error);
  EXPECT_THROW(decode(packed_leaf(1, -3, "a"), good), Error);
  EXPECT_THROW(decode(packed_leaf(2, 3, "a"), good), Error);
  // Chunk counts that do not match the size: for four thousand million not even the keys would fit in memory.
  EXPECT_EQ(decode(key, with_body(0, 2)).chunks, 0u);
  EXPECT_EQ(decode(key, with_body(2, 96'001)).chunks, 2u);
  EXPECT_EQ(decode(key, with_body(kMaxBodyChunks, kMaxDocumentBytes)).chunks, kMaxBodyChunks);
  for (const auto& [chunks, bytes] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 2},
                                                            {0, 7},
                                                            {UINT32_MAX, 7},
                                                            {(std::uint64_t{1} << 32) + 1, 7},
                                                            {UINT64_MAX, 7},
                                                            {kMaxBodyChunks, kMaxDocumentBytes + 1},
                                                            {0, UINT64_MAX}}) {
    EXPECT_THROW(decode(key, with_body(chunks, bytes)), Error) << chunks << ", " << bytes;
  }
}

struct Readers : DocsTest {};

TEST_F(Readers, DocumentsAreListedInOrder) {
  for (const std::string id : {"a", "b", "c", "d"}) put(R"({"_id":")" + id + "\"}");
  put(R"({"_id":"a\u0000b"})");
  replicate(
      {R"({"_id":"b","_rev":"2-x"})", R"({"_id":"c","_revisions":{"start":2,"ids":["x"]},"_deleted":true})"});
  put(R"({"_id":"d","_rev":")" + put(R"({"_id":"e"})") + R"(","_deleted":true})");
  const auto ids = [&](const DocumentRange& range, std::size_t limit = 99) {
    return with_db([&](auto& tx, const Database& db) {
      std::vector<std::string> found;
      visit_documents(tx, db, range, [&](const std::string& id, const Leaf& winner) {
        EXPECT_FALSE(winner.deleted);
        found.push_back(id + (winner.path.generation == 2 ? "2" : ""));
        return found.size() < limit;
      });
      return found;
    });
  };
  const std::string nul("a\0b", 3);
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids({}), (Ids{"a", nul, "b2", "c", "e"}));
  EXPECT_EQ(ids({.descending = true}), (Ids{"e", "c", "b2", nul, "a"}));
  EXPECT_EQ(ids({.start_id = "b", .end_id = "c"}), (Ids{"b2", "c"}));
  EXPECT_EQ(ids({.start_id = "a", .end_id = "a"}), (Ids{"a"}));
  EXPECT_EQ(ids({.start_id = "b", .end_id = "c", .inclusive_end = false}), (Ids{"b2"}));
  EXPECT_EQ(ids({.start_id = "c", .end_id = "a", .descending = true}), (Ids{"c", "b2", nul, "a"}));
  EXPECT_EQ(ids({.start_id = "c", .end_id = "a", .inclusive_end = false, .descending = true}),
            (Ids{"c", "b2", nul}));
  EXPECT_EQ(ids({.start_id = "c", .end_id = "b"}), (Ids{}));
  EXPECT_EQ(ids({}, 2), (Ids{"a", nul}));
}

}  // namespace
}  // namespace divan::docs
