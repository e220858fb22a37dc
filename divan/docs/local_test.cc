// Local documents.
#include "divan/docs/local.h"

#include <algorithm>

#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

struct LocalDocuments : DocsTest {};

TEST_F(LocalDocuments, LocalDocuments) {
  const auto write = [&](std::string_view json) {
    return with_db([&](auto& tx, const Database& db) { return write_local(tx, db, parse_document(json)); });
  };
  EXPECT_EQ(write(R"({"_id":"_local/a","n":1})"), 1);
  EXPECT_THAT(error_of([&] { write(R"({"_id":"_local/a","n":2})"); }), testing::HasSubstr("conflict"));
  EXPECT_EQ(write(R"({"_id":"_local/a","_rev":"0-1","t":")" + std::string(200'000, 'x') + "\"}"), 2);
  EXPECT_EQ(write(R"({"_id":"_local/b","n":1})"), 1);
  EXPECT_TRUE(changes().empty());
  with_db([&](auto& tx, const Database& db) {
    EXPECT_EQ(read_local(tx, db, "_local/a")->body.size(), 200'000u + 8);
    EXPECT_EQ(read_local(tx, db, "_local/a")->revision, 2);
    std::string ids;
    const auto visit = [&](const std::string& id, const LocalDocument& document) {
      ids += id + "@" + std::to_string(document.revision) + "/" + std::to_string(document.body.size()) + " ";
      return true;
    };
    visit_locals(tx, db, {}, visit);
    EXPECT_EQ(ids, "_local/a@2/200008 _local/b@1/7 ");
    ids.clear();
    visit_locals(tx, db, {.descending = true}, visit);
    EXPECT_EQ(ids, "_local/b@1/7 _local/a@2/200008 ");
  });
  EXPECT_EQ(write(R"({"_id":"_local/a","_rev":"0-2","_deleted":true})"), 0);
  EXPECT_THAT(error_of([&] { write(R"({"_id":"_local/a","_deleted":true})"); }),
              testing::HasSubstr("not_found"));
}

// All ranges of a few ids and of strings before, between and after them, against a filter of the list.
TEST_F(LocalDocuments, LocalDocumentsOfARange) {
  const std::vector<std::string> all = {"_local/a", "_local/aa", "_local/b"};
  for (const auto& id : all) {
    with_db([&](auto& tx, const Database& db) {
      return write_local(tx, db, parse_document(R"({"_id":")" + id + "\"}"));
    });
  }
  const std::vector<std::optional<std::string>> bounds = {
      std::nullopt, "", "_local/", "_local/a", "_local/ab", "_local/b", "_local/c", "_local0", "z"};
  for (const auto& start : bounds) {
    for (const auto& end : bounds) {
      for (const int flags : {0, 1, 2, 3}) {
        const DocumentRange range{start, end, (flags & 1) != 0, (flags & 2) != 0};
        std::vector<std::string> expected, found;
        for (const auto& id : all) {
          const auto& lower = range.descending ? end : start;
          const auto& upper = range.descending ? start : end;
          if (lower && id < *lower) continue;
          if (upper && id > *upper) continue;
          if (!range.inclusive_end && end == id) continue;
          expected.push_back(id);
        }
        if (range.descending) std::ranges::reverse(expected);
        with_db([&](auto& tx, const Database& db) {
          visit_locals(tx, db, range, [&](const std::string& id, const LocalDocument&) {
            found.push_back(id);
            return true;
          });
        });
        EXPECT_EQ(found, expected) << start.value_or("-") << " " << end.value_or("-") << " " << flags;
      }
    }
  }
}

TEST_F(LocalDocuments, DamagedRowsAreRejected) {
  const auto put_row = [&](std::string_view key, std::string_view value) {
    with_db([&](auto& tx, const Database& db) {
      tx.set(db.keys().section(Section::local) + std::string(key), value);
    });
  };
  std::string name, last;
  kv::tuple::Packer(name).string("a").integer(0);
  kv::tuple::Packer(last).integer(INT64_MAX);
  for (const std::string& value : {last + "{}", std::string("{}"), std::string()}) {
    put_row(name, value);
    EXPECT_THROW(with_db([](auto& tx, const Database& db) { return read_local(tx, db, "_local/a"); }), Error);
  }
  put_row(
      "\x06"
      "b",
      "\x15\x01{}");
  EXPECT_THROW(with_db([](auto& tx, const Database& db) {
                 visit_locals(tx, db, {}, [](const std::string&, const LocalDocument&) { return false; });
               }),
               Error);
}

}  // namespace
}  // namespace divan::docs
