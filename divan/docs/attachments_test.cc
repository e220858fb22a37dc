// Attachments: their stubs in bodies, and their contents, which are counted.
#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/docs/compaction.h"
#include "divan/docs/contents.h"
#include "divan/docs/testing.h"

namespace divan::docs {
namespace {

using kv::testing::MapRows;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Attachments : DocsTest {
  void SetUp() override {
    DocsTest::SetUp();
    catalog.set_max_old_revisions(0);  // contents are removed with the revisions that have them
  }

  std::size_t contents() {
    return with_db([](auto& tx, const Database& db) {
      return tx.get_range(below(db.keys().section(Section::attachments)), {}).rows.size();
    });
  }

  std::string data_of(std::string_view id, std::string_view name) {
    return with_db([&](auto& tx, const Database& db) {
      const auto attachment = find_attachment(find_document(tx, db, id, std::nullopt).body, name);
      if (!attachment) return std::string("none");
      const Content content = read_content(tx, db, attachment->md5);
      const auto chunks = kv::chunk_count(content.length);
      return chunks == 0 ? std::string() : read_content_chunks(tx, db, content, 0, chunks);
    });
  }
};

std::string with_data(std::string_view id, std::string_view rev, std::string_view name,
                      std::string_view data) {
  return fmt::format(R"({{"_id":"{}",{}"_attachments":{{"{}":{{"data":"{}"}}}}}})", id,
                     rev.empty() ? "" : fmt::format(R"("_rev":"{}",)", rev), name, to_base64(data));
}

std::string counter(char value) { return value + std::string(7, '\0'); }

TEST_F(Attachments, ABodyBeginsWithStubs) {
  const Attachment attachment{
      .name = "a\"b", .content_type = "text/plain", .revpos = 3, .md5 = md5("x"), .length = 1};
  const std::string stub =
      R"({"_attachments":{"a\"b":{"content_type":"text/plain","revpos":3,"digest":"md5-ndTkYSaMgDT1yFZOFVxnpg==",)"
      R"("length":1,"stub":true}})";
  EXPECT_EQ(with_attachments("{}", {attachment}), stub + "}");
  EXPECT_EQ(with_attachments(R"({"n":1})", {attachment}), stub + R"(,"n":1})");
  EXPECT_EQ(with_attachments(R"({"n":1})", {}), R"({"n":1})");
  for (const std::string_view body :
       {"{}", R"({"n":1})", R"({"_attachment":1})", R"({"n":{"_attachments":{}}})"}) {
    const std::string stored = with_attachments(body, {attachment, attachment});
    ASSERT_EQ(attachments_of(stored).size(), 2u);
    EXPECT_EQ(attachments_of(stored)[0].name, "a\"b");
    EXPECT_EQ(attachments_of(stored)[0].md5, md5("x"));
    EXPECT_EQ(without_attachments(stored), body);
    EXPECT_EQ(without_attachments(body), body);
    EXPECT_THAT(attachments_of(body), IsEmpty());
  }
}

TEST_F(Attachments, DamagedStubsAreReported) {
  for (
      const std::string_view body :
      {R"({"_attachments":{}})", R"({"_attachments":1})", R"({"_attachments":{"x":1}})",
       R"({"_attachments":{"x":{"content_type":"a","revpos":1,"digest":"md5-x","length":1}}})",
       R"({"_attachments":{"x":{"content_type":"a","revpos":1,"digest":"md5-ndTkYSaMgDT1yFZOFVxnpg==","length":-1}}})",
       R"({"_attachments":)", R"({"_attachments":{"x)"})
    EXPECT_THAT(error_of([&] { attachments_of(body); }), HasSubstr("damaged")) << body;
}

TEST_F(Attachments, AContentIsStoredOnceAndRemovedWithItsLastReference) {
  const auto first = put(with_data("a", "", "x", "hello"));
  EXPECT_EQ(contents(), 3u);
  EXPECT_EQ(info().attachment_bytes, 5);
  const auto second = put(with_data("b", "", "y", "hello"));
  EXPECT_EQ(contents(), 3u);
  put(fmt::format(R"({{"_id":"a","_rev":"{}"}})", first));
  EXPECT_EQ(data_of("b", "y"), "hello");
  EXPECT_THAT(findings(), IsEmpty());
  put(fmt::format(R"({{"_id":"b","_rev":"{}","_deleted":true}})", second));
  EXPECT_EQ(contents(), 0u);
  EXPECT_EQ(info().attachment_bytes, 0);
  EXPECT_THAT(findings(), IsEmpty());
}

// An attacker who knows how to make contents with equal MD5 cannot replace another's.
TEST_F(Attachments, AnotherContentWithTheSameMd5IsRefused) {
  put(with_data("a", "", "x", "hello"));
  std::vector documents{parse_document(with_data("b", "", "x", "hello"))};
  documents[0].attachments[0].data = "jello";
  documents[0].attachments[0].sha256 = sha256("jello");
  const auto results = bulk_edit(*store, catalog, "db", documents, rng);
  ASSERT_TRUE(results[0].error);
  EXPECT_EQ(results[0].error->status(), 409);
  EXPECT_EQ(data_of("a", "x"), "hello");
}

// Removals from a content with many references do not read their exact number, which would make all of them
// conflict with each other.
TEST_F(Attachments, RemovalsOfACommonContentDoNotConflict) {
  const auto change_references = [&](std::int64_t by) {
    with_db([&](auto& tx, const Database& db) { tx.add(db.keys().content_references(md5("hello")), by); });
  };
  const auto remove = [&](kv::Transaction& tx, const std::string& id, const std::string& rev) {
    Writer writer(tx, catalog.open(tx, "db"));
    EXPECT_FALSE(
        writer.edit({.id = id, .revision = parse_revision(rev), .deleted = true, .body = "{}"}).error);
    writer.finish();
  };
  for (const bool is_common : {true, false}) {
    const auto a = put(with_data("a", "", "x", "hello")), b = put(with_data("b", "", "x", "hello"));
    if (is_common) change_references(1'000'000);
    const auto one = store->begin(), two = store->begin();
    remove(*one, "a", a);
    remove(*two, "b", b);
    one->commit();
    if (is_common) {
      two->commit();
      change_references(-1'000'000);
      continue;
    }
    EXPECT_THROW(two->commit(), kv::Error);
    two->reset();
    remove(*two, "b", b);
    two->commit();
    EXPECT_EQ(contents(), 0u);
  }
}

// Otherwise none of them would see that it removes the last one.
TEST_F(Attachments, LargeRemovalsReadTheExactNumber) {
  std::string list;
  for (int i = 0; i < 1'500; ++i) list += fmt::format(R"({}"{}":{{"data":"MQ=="}})", i == 0 ? "" : ",", i);
  std::vector<Revision> revs;
  for (const auto* id : {"a", "b"})
    revs.push_back(parse_revision(put(fmt::format(R"({{"_id":"{}","_attachments":{{{}}}}})", id, list))));
  const auto one = store->begin(), two = store->begin();
  for (const auto* tx : {&one, &two}) {
    Writer writer(**tx, catalog.open(**tx, "db"));
    writer.edit(
        {.id = tx == &one ? "a" : "b", .revision = revs[tx == &one ? 0 : 1], .deleted = true, .body = "{}"});
    writer.finish();
  }
  one->commit();
  EXPECT_THROW(two->commit(), kv::Error);
  EXPECT_THAT(findings(), IsEmpty());
}

// A stub can refer to a revision that another one of the same request replaces, so that it is not written.
TEST_F(Attachments, StubsOfRevisionsThatAreReplacedAtOnce) {
  replicate(
      {R"({"_id":"d","_rev":"1-a","_attachments":{"x":{"data":"aGVsbG8="},"y":{"data":"MQ=="}}})",
       R"({"_id":"d","_revisions":{"start":2,"ids":["b","a"]},"_attachments":{"x":{"stub":true,"revpos":1}}})"});
  EXPECT_EQ(data_of("d", "x"), "hello");
  EXPECT_EQ(contents(), 3u);
  EXPECT_THAT(findings(), IsEmpty());
  put(R"({"_id":"d","_rev":"2-b","_deleted":true})");
  EXPECT_EQ(contents(), 0u);
}

TEST_F(Attachments, ADocumentHasALimitWithTheirNamesAndTypes) {
  std::string list;
  for (int i = 0; i < 30'000; ++i) list += fmt::format(R"({}"{}":{{"data":""}})", i == 0 ? "" : ",", i);
  const auto many = edit(fmt::format(R"({{"_id":"b","_attachments":{{{}}}}})", list));
  ASSERT_TRUE(many.error);
  EXPECT_EQ(many.error->name(), "attachment_too_large");
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Attachments, OneHasALimit) {
  catalog.set_max_attachment_bytes(5);
  EXPECT_FALSE(edit(with_data("a", "", "x", "hello")).error);
  const auto larger = edit(with_data("b", "", "x", "hello!"));
  ASSERT_TRUE(larger.error);
  EXPECT_EQ(larger.error->name(), "attachment_too_large");
  EXPECT_THAT(larger.error->reason(), HasSubstr("Attachment x is larger than"));
}

// Whichever of two transactions commits first: one removes the last reference, the other one adds one.
TEST_F(Attachments, ARemovalConflictsWithANewReference) {
  for (const bool removal_first : {true, false}) {
    const auto rev = parse_revision(put(with_data("a", "", "x", "hello")));
    const auto removal = store->begin(), addition = store->begin();
    Writer remover(*removal, catalog.open(*removal, "db"));
    remover.edit({.id = "a", .revision = rev, .deleted = true, .body = "{}"});
    remover.finish();
    Writer adder(*addition, catalog.open(*addition, "db"));
    adder.edit(parse_document(with_data("b", "", "x", "hello")));
    adder.finish();
    (removal_first ? removal : addition)->commit();
    try {
      (removal_first ? addition : removal)->commit();
      ADD_FAILURE() << "no conflict";
    } catch (const kv::Error& error) { EXPECT_EQ(error.code(), kv::ErrorCode::not_committed); }
    EXPECT_EQ(contents(), removal_first ? 0u : 3u);
    EXPECT_THAT(findings(), IsEmpty());
  }
  EXPECT_EQ(data_of("b", "x"), "hello");
}

// Random edits, replicated revisions and deletions: afterwards no content is missing, and none is left.
TEST_F(Attachments, RandomWritesLeaveConsistentContents) {
  catalog.set_max_old_revisions(2);
  const auto pick = [&](std::uint64_t bound) { return rng.below(bound); };
  const auto random_attachments = [&](bool stubs) {
    std::string list;
    for (std::uint64_t i = pick(4); i > 0; --i) {
      const std::string data(pick(3) == 0 ? 100'000 : 5, static_cast<char>('a' + pick(3)));
      list += fmt::format(
          R"({}"{}":{})", list.empty() ? "" : ",", i,
          stubs && pick(2) == 0 ? R"({"stub":true})" : fmt::format(R"({{"data":"{}"}})", to_base64(data)));
    }
    return list;
  };
  for (int step = 0; step < 300; ++step) {
    const std::string id = fmt::format("d{}", pick(5));
    const auto tree = with_db([&](auto& tx, const Database& db) { return read_tree(tx, db, id); });
    const std::string rev = tree.empty() ? "" : tree[pick(tree.size())].revision().to_string();
    const std::string deleted = pick(4) == 0 ? R"("_deleted":true,)" : "";
    if (pick(3) == 0) {
      const auto generation = tree.empty() ? 0u : tree.front().path.generation;
      const std::string parent =
          tree.empty() ? "" : fmt::format(R"(,"{}")", Revision::id_to_string(tree.front().path.ids.front()));
      replicate({fmt::format(
          R"({{"_id":"{}",{}"_revisions":{{"start":{},"ids":["{}"{}]}},"_attachments":{{{}}}}})", id, deleted,
          generation + 1, to_hex(rng.bytes(4)), pick(3) == 0 ? "" : parent, random_attachments(true))});
    } else {
      edit(fmt::format(R"({{"_id":"{}",{}{}"_attachments":{{{}}}}})", id,
                       rev.empty() ? "" : fmt::format(R"("_rev":"{}",)", rev), deleted,
                       random_attachments(true)));
    }
    if (step % 20 == 0) { ASSERT_THAT(findings(), IsEmpty()) << "after step " << step; }
  }
  ASSERT_THAT(findings(), IsEmpty());
  EXPECT_GT(contents(), 0u);
  for (int i = 0; i < 5; ++i) {
    const std::string id = fmt::format("d{}", i);
    for (;;) {
      const auto tree = with_db([&](auto& tx, const Database& db) { return read_tree(tx, db, id); });
      const auto live = std::ranges::find_if(tree, [](const Leaf& leaf) { return leaf.attachments > 0; });
      if (live == tree.end()) break;
      // A tombstone may have attachments, too: it is extended by another one.
      replicate({fmt::format(
          R"({{"_id":"{}","_deleted":true,"_revisions":{{"start":{},"ids":["{}","{}"]}}}})", id,
          live->path.generation + 1, to_hex(rng.bytes(4)), Revision::id_to_string(live->path.ids.front()))});
    }
  }
  EXPECT_GT(contents(), 0u);
  with_db([](auto& tx, const Database& db) { compact(tx, db); });
  EXPECT_EQ(contents(), 0u);
  EXPECT_EQ(info().attachment_bytes, 0);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Attachments, AreCompressedByTheirTypes) {
  const auto put_as = [&](const std::string& id, std::string_view type, const std::string& data) {
    std::vector documents{parse_document(with_data(id, "", "x", data))};
    auto& attachment = documents[0].attachments[0];
    attachment.content_type = type;
    compress(attachment, catalog.compression_level(type, false));
    const auto result = bulk_edit(*store, catalog, "db", documents, rng).front();
    EXPECT_FALSE(result.error);
    return result.revision.to_string();
  };
  const auto stored = [&](const std::string& data) {
    return with_db([&](auto& tx, const Database& db) { return read_content(tx, db, md5(data)); });
  };
  const std::string long_text(250'000, 'x'), page(1000, 'y'), short_text = "hi", bytes(1000, 'z');
  put_as("before", "text/plain", long_text + "before");
  catalog.set_compression({6, {"text/*"}});
  const auto rev = put_as("long", "text/plain; charset=utf-8", long_text);
  put_as("page", "text/html", page);
  put_as("short", "text/plain", short_text);
  put_as("bytes", "application/octet-stream", bytes);
  EXPECT_FALSE(stored(long_text + "before").deflated);
  ASSERT_TRUE(stored(long_text).deflated);
  EXPECT_LT(stored(long_text).deflated->length, 1000u);
  EXPECT_TRUE(stored(page).deflated);
  EXPECT_FALSE(stored(short_text).deflated) << "it would be larger";
  EXPECT_FALSE(stored(bytes).deflated);
  EXPECT_EQ(data_of("long", "x"), long_text);
  EXPECT_EQ(data_of("page", "x"), page);
  EXPECT_EQ(info().attachment_bytes, static_cast<std::int64_t>(2 * long_text.size() + 6 + 2 + 2000));
  EXPECT_EQ(catalog.compression_level("image/png", false), 0);
  EXPECT_EQ(catalog.compression_level("image/png", true), 6) << "the client has compressed it";
  // A content is stored once, whatever its types are.
  put_as("again", "application/octet-stream", page);
  EXPECT_TRUE(stored(page).deflated);
  EXPECT_THAT(findings(), IsEmpty());

  const DatabaseKeys keys(0);
  const auto chunk = [&](std::uint32_t n) {
    return keys.content_chunk(ContentRow::deflated_chunk, sha256(long_text), n);
  };
  const auto finding = [&](const std::function<void(MapRows::Map&)>& damage) {
    const auto found = findings(damage);
    return found.empty() ? "nothing" : found.front();
  };
  EXPECT_THAT(finding([&](auto& map) { map[chunk(0)][0] = '\x07'; }), HasSubstr("content of an attachment"));
  EXPECT_THAT(finding([&](auto& map) { map[chunk(0)].pop_back(); }), HasSubstr("contents of attachments"));
  EXPECT_THAT(finding([&](auto& map) { std::swap(map[chunk(0)], map[chunk(2)]); }), HasSubstr("is missing"));
  EXPECT_THAT(finding([&](auto& map) { map.erase(chunk(2)); }), HasSubstr("contents of attachments"));
  EXPECT_THAT(finding([&](auto& map) {
                Content content = decode_content(map[keys.content(md5(long_text))]);
                ++content.deflated->crc32;
                map[keys.content(md5(long_text))] = encode_content(content);
              }),
              HasSubstr("contents of attachments"));

  const auto before = contents();
  put(fmt::format(R"({{"_id":"long","_rev":"{}","_deleted":true}})", rev));
  EXPECT_EQ(contents(), before - 2 - 3);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(Attachments, TheCheckFindsDamage) {
  put(with_data("a", "", "x", "hello"));
  put(with_data("b", "", "x", std::string(200'000, 'x')));
  const DatabaseKeys keys(0);
  const std::string content = keys.content(md5("hello")), references = keys.content_references(md5("hello"));
  const std::string chunk = keys.content_chunk(ContentRow::chunk, sha256("hello"), 0);
  const auto finding = [&](const std::function<void(MapRows::Map&)>& damage) {
    const auto found = findings(damage);
    return found.empty() ? "nothing" : found.front();
  };
  EXPECT_THAT(finding([&](auto& map) { map.erase(content); }), HasSubstr("attachment_bytes"));
  EXPECT_THAT(finding([&](auto& map) { map.erase(references); }), HasSubstr("numbers of references"));
  EXPECT_THAT(finding([&](auto& map) { map[references] = counter(2); }), HasSubstr("numbers of references"));
  EXPECT_THAT(finding([&](auto& map) { map[references] = counter(0); }), HasSubstr("references is damaged"));
  EXPECT_THAT(finding([&](auto& map) { map.erase(chunk); }), HasSubstr("contents of attachments"));
  EXPECT_THAT(finding([&](auto& map) { map[chunk] = "jello"; }), HasSubstr("contents of attachments"));
  EXPECT_THAT(finding([&](auto& map) { map[content] += "x"; }), HasSubstr("content is damaged"));
  EXPECT_THAT(finding([&](auto& map) {
                map.erase(keys.content_chunk(ContentRow::chunk, sha256(std::string(200'000, 'x')), 1));
              }),
              HasSubstr("the previous chunk is missing"));
}

}  // namespace
}  // namespace divan::docs
