#include "divan/index/views/view_batch.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/base/bytes.h"
#include "divan/docs/catalog.h"
#include "divan/kv/chunks.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::index::views {
namespace {

// Rows that were not written by a builder.
struct DamagedViewRows : ::testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  docs::Catalog catalog{bus, clock};
  docs::Database database{catalog, "db", 1, 0};
  IndexKeys keys{database, std::string(16, 's')};

  // The position of row `number` of a document, with the same key for all.
  static std::string position(std::string_view id, std::uint32_t number = 0) {
    std::string key = "\x10k";
    kv::tuple::Packer(key).string(id);
    append_u32(key, number);
    return key;
  }
  void set(const std::string& key, std::uint16_t chunk, std::string_view piece) {
    std::string row = all_rows(keys, 0).begin + key;
    append_u16(row, chunk);
    store->run([&](kv::Transaction& tx) { tx.set(row, piece); });
  }
  std::string read(bool descending) {
    std::string out;
    store->run([&](kv::Transaction& tx) {
      visit_rows(tx, keys, 0, all_rows(keys, 0), descending, [&](const ViewRow& row) {
        out += fmt::format("{} {} {};", row.id, row.key, row.value);
        return true;
      });
    });
    return out;
  }
  void expect_damaged() {
    EXPECT_THROW(read(false), Error);
    EXPECT_THROW(read(true), Error);
  }
  std::size_t write_over(std::string_view list) {
    std::string key = keys.part(2);
    kv::tuple::Packer(key).string("d").integer(0);
    store->run([&](kv::Transaction& tx) { tx.set(key, list); });
    ViewBatch batch(2);
    batch.add_document("d");
    const std::size_t next = batch.prepare(*store, keys, 0, {});
    store->run([&](kv::Transaction& tx) { batch.write(tx, keys); });
    return next;
  }
};

TEST_F(DamagedViewRows, RowsOfSeveralChunksAreComplete) {
  set(position("a"), 0,
      "\x02\x01\x03"
      "1\"");
  set(position("a"), 1, "x\"");
  set(position("b"), 0,
      "\x02\x01\x01"
      "23");
  EXPECT_EQ(read(false), "a 1 \"x\";b 2 3;");
  EXPECT_EQ(read(true), "b 2 3;a 1 \"x\";");
}

TEST_F(DamagedViewRows, ChunksOfDifferentRowsAreNotJoined) {
  set(position("a"), 0,
      "\x02\x01\x03"
      "1\"");
  set(position("b"), 1, "x\"");
  expect_damaged();
}

TEST_F(DamagedViewRows, AMissingChunkIsDetected) {
  set(position("a"), 0,
      "\x02\x01\x03"
      "1\"");
  set(position("a"), 2, "x\"");
  expect_damaged();
}

TEST_F(DamagedViewRows, AMissingEndIsDetected) {
  set(position("a"), 0,
      "\x02\x01\x03"
      "1\"");
  expect_damaged();
}

TEST_F(DamagedViewRows, InconsistentSizesAreDetected) {
  std::string huge = "\x02";
  append_varint(huge, UINT64_MAX);
  append_varint(huge, 2);
  for (const std::string& value : {std::string("\x7f\x01\x01"
                                               "12"),
                                   std::string("\x02\x01\x01"
                                               "123"),
                                   std::string("\x02\x81"), std::string(), huge + "1"}) {
    set(position("a"), 0, value);
    expect_damaged();
  }
  set(position("a") + "more", 0,
      "\x02\x01\x01"
      "12");
  expect_damaged();
}

TEST_F(DamagedViewRows, ListsOfRowsNameExistingViews) {
  EXPECT_EQ(write_over(std::string("\x01\x02\x10k\x00\x01", 6)), 1u);
  EXPECT_THROW(write_over(std::string("\x02\x02\x10k\x00\x01", 6)), Error);
  std::string view;
  append_varint(view, (std::uint64_t{1} << 32) + 1);
  EXPECT_THROW(write_over(view + std::string("\x02\x10k\x00\x01", 5)), Error);
  std::string chunks("\x01\x02\x10k\x00", 5);
  append_varint(chunks, UINT32_MAX);
  EXPECT_THROW(write_over(chunks), Error);
}

}  // namespace
}  // namespace divan::index::views
