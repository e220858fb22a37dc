#include "divan/docs/uploads.h"

#include <fmt/core.h>

#include "divan/base/digest.h"
#include "divan/docs/check.h"
#include "divan/docs/contents.h"
#include "divan/docs/testing.h"
#include "divan/kv/check_testing.h"

namespace divan::docs {
namespace {

using kv::kChunkBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct UploadsTest : DocsTest {
  ManualClock manual;
  Uploads uploads{*store, catalog, manual, rng};

  void write(Upload& upload, std::string_view bytes) {
    const auto chunks = upload.encode(bytes);
    store->run([&](kv::Transaction& tx) { upload.write(tx, chunks); });
    upload.written(chunks);
  }

  std::shared_ptr<Upload> uploaded(std::string_view bytes, int level = 0,
                                   std::size_t step = 2 * kChunkBytes) {
    auto upload = std::make_shared<Upload>(uploads, "db", level);
    for (std::size_t at = 0; at < bytes.size(); at += step) write(*upload, bytes.substr(at, step));
    return upload;
  }

  // Writes a document with one attachment, "a".
  WriteResult put_with(const std::string& id, std::shared_ptr<const Upload> upload,
                       std::string_view members = "") {
    std::vector documents{parse_document(fmt::format(R"({{"_id":"{}"{}}})", id, members))};
    auto& attachment = documents[0].attachments.emplace_back();
    attachment.name = "a";
    set_upload(attachment, std::move(upload));
    return bulk_edit(*store, catalog, "db", documents, rng).front();
  }

  std::string content(std::string_view id) {
    return with_db([&](auto& tx, const Database& db) {
      const auto attachment = find_attachment(find_document(tx, db, id, std::nullopt).body, "a");
      const Content found = read_content(tx, db, attachment.value().md5);
      return read_content_chunks(tx, db, found, 0, kv::chunk_count(found.length));
    });
  }

  // The rows of contents and uploads.
  std::size_t rows() {
    return with_db([](auto& tx, const Database& db) {
      std::string uploads_prefix;
      kv::tuple::Packer(uploads_prefix).string("uploads");
      return tx.get_range(kv::below(db.keys().section(Section::attachments)), {}).rows.size() +
             tx.get_range(kv::below(uploads_prefix), {}).rows.size();
    });
  }
};

std::string bytes_of(std::size_t size, char first = 'a') {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + i % 23);
  return bytes;
}

std::string noise_of(std::size_t size) {
  SeededRng rng(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.next());
  return bytes;
}

TEST_F(UploadsTest, BecomeContents) {
  for (const std::size_t size : {std::size_t{1}, kChunkBytes, 5 * kChunkBytes + 17}) {
    const std::string bytes = bytes_of(size);
    const auto upload = uploaded(bytes);
    EXPECT_EQ(upload->length(), size);
    EXPECT_EQ(upload->md5(), md5(bytes));
    EXPECT_EQ(upload->content().sha256, sha256(bytes));
    const std::string id = fmt::format("doc{}", size);
    EXPECT_FALSE(put_with(id, upload).error);
    EXPECT_EQ(content(id), bytes);
    EXPECT_THAT(findings(), IsEmpty());
  }
  // The content, the number of its references, and the chunks.
  EXPECT_EQ(rows(), 3u * 2 + 1 + 1 + 6);
  EXPECT_EQ(uploads.collect(), 0u);
  EXPECT_EQ(rows(), 3u * 2 + 1 + 1 + 6);
}

TEST_F(UploadsTest, AreCompressedIfTheirBeginningBecomesSmaller) {
  const std::string noise = noise_of(2 * kChunkBytes), text = bytes_of(3 * kChunkBytes + 17);
  const auto compressed = uploaded(text + noise, 6), other = uploaded(noise + text, 6);
  EXPECT_THAT(findings(), IsEmpty()) << "while they are written";
  ASSERT_TRUE(compressed->content().deflated);
  EXPECT_LT(compressed->content().deflated->length, noise.size() + 20'000);
  EXPECT_FALSE(other->content().deflated);
  EXPECT_FALSE(put_with("compressed", compressed).error);
  EXPECT_FALSE(put_with("other", other).error);
  EXPECT_EQ(content("compressed"), text + noise);
  EXPECT_EQ(content("other"), noise + text);
  EXPECT_EQ(info().attachment_bytes, static_cast<std::int64_t>(2 * (text.size() + noise.size())));
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(UploadsTest, ACompressedUploadThatIsNotUsedIsRemoved) {
  auto upload = uploaded(bytes_of(3 * kChunkBytes), 6);
  EXPECT_EQ(rows(), 3u + 2);
  upload.reset();
  EXPECT_EQ(uploads.collect(), 1u);
  EXPECT_EQ(rows(), 0u);
}

TEST_F(UploadsTest, OneContentIsStoredOnce) {
  catalog.set_max_old_revisions(0);
  const std::string bytes = bytes_of(3 * kChunkBytes);
  auto first = uploaded(bytes), second = uploaded(bytes);
  EXPECT_FALSE(put_with("one", first).error);
  EXPECT_FALSE(put_with("two", std::exchange(second, nullptr)).error);
  EXPECT_EQ(uploads.collect(), 1u);
  EXPECT_EQ(rows(), 2u + 3);
  EXPECT_EQ(content("one"), bytes);
  EXPECT_EQ(content("two"), bytes);
  EXPECT_THAT(findings(), IsEmpty());
  // The last reference removes it.
  for (const char* id : {"one", "two"}) {
    const std::string document = get(id);
    put(fmt::format(R"({{"_id":"{}","_rev":{}}})", id, json::member(document, "_rev").value()));
  }
  EXPECT_EQ(rows(), 0u);
}

TEST_F(UploadsTest, AnUploadThatIsNotUsedIsRemoved) {
  auto upload = uploaded(bytes_of(3 * kChunkBytes));
  EXPECT_EQ(rows(), 3u + 2);
  EXPECT_THAT(findings(), IsEmpty());
  upload.reset();
  EXPECT_EQ(uploads.collect(), 1u);
  EXPECT_EQ(rows(), 0u);
  // The same for a document that is refused.
  put(R"({"_id":"doc"})");
  EXPECT_EQ(put_with("doc", uploaded(bytes_of(kChunkBytes))).error.value().name(), "conflict");
  EXPECT_EQ(uploads.collect(), 1u);
  EXPECT_EQ(rows(), 0u);
}

TEST_F(UploadsTest, WhatAProcessLeavesIsRemovedByAnotherOne) {
  const auto upload = uploaded(bytes_of(2 * kChunkBytes));
  Uploads others(*store, catalog, manual, rng);
  EXPECT_EQ(others.collect(), 0u);
  manual.advance(kUploadTimeout - std::chrono::seconds(1));
  EXPECT_EQ(others.collect(), 0u);
  write(*upload, bytes_of(kChunkBytes));  // it goes on
  manual.advance(std::chrono::seconds(61));
  EXPECT_EQ(others.collect(), 0u);
  manual.advance(kUploadTimeout);
  EXPECT_EQ(others.collect(), 1u);
  EXPECT_EQ(rows(), 0u);
  EXPECT_THAT(error_of([&] { write(*upload, bytes_of(kChunkBytes)); }), HasSubstr("could not renew it"));
  EXPECT_THAT(error_of([&] { put_with("doc", upload); }), HasSubstr("could not renew it"));
  EXPECT_EQ(rows(), 0u);
}

TEST_F(UploadsTest, AnUploadOfALivingProcessStays) {
  const std::string bytes = bytes_of(2 * kChunkBytes);
  const auto upload = uploaded(bytes);
  Uploads others(*store, catalog, manual, rng);
  for (int minutes = 0; minutes < 60; ++minutes) {
    EXPECT_EQ(uploads.collect() + others.collect(), 0u);
    manual.advance(std::chrono::minutes(1));
  }
  write(*upload, bytes);
  EXPECT_FALSE(put_with("doc", upload).error);
  EXPECT_EQ(content("doc"), bytes + bytes);
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(UploadsTest, AnUploadThatNobodyWouldRemoveIsFound) {
  const auto upload = uploaded(bytes_of(kChunkBytes));
  store->run([&](kv::Transaction& tx) {
    std::string prefix;
    kv::tuple::Packer(prefix).string("uploads");
    tx.clear_range(kv::below(prefix));
  });
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("would never be removed")));
}

TEST_F(UploadsTest, ADeletedDatabaseTakesItsUploadsWithIt) {
  const auto upload = uploaded(bytes_of(2 * kChunkBytes));
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  EXPECT_THAT(error_of([&] { write(*upload, bytes_of(kChunkBytes)); }), HasSubstr("does not exist"));
  store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  EXPECT_THAT(error_of([&] { write(*upload, bytes_of(kChunkBytes)); }), HasSubstr("does not exist"));
  EXPECT_EQ(rows(), 1u);  // the row outside of the database
  Uploads others(*store, catalog, manual, rng);
  EXPECT_EQ(others.collect(), 0u);
  manual.advance(kUploadTimeout);
  EXPECT_EQ(others.collect(), 1u);
  EXPECT_EQ(rows(), 0u);
}

TEST_F(UploadsTest, ManyOfThemTakeLittleMemoryEach) {
  EXPECT_EQ(uploads.piece_bytes(), 10 * kChunkBytes);
  std::vector<std::unique_ptr<Upload>> many;
  for (int i = 0; i < 1000; ++i) many.push_back(std::make_unique<Upload>(uploads, "db", 0));
  EXPECT_EQ(uploads.piece_bytes(), kChunkBytes);
  many.resize(50);
  EXPECT_GT(uploads.piece_bytes(), kChunkBytes);
  EXPECT_LT(uploads.piece_bytes(), 10 * kChunkBytes);
  many.clear();
  EXPECT_EQ(uploads.piece_bytes(), 10 * kChunkBytes);
}

TEST_F(UploadsTest, MarkersAreRecognised) {
  const DatabaseKeys keys(7);
  std::string row;
  kv::tuple::Packer(row).string("uploads").integer(7).bytes("id");
  EXPECT_EQ(upload_row_of_marker(keys.upload("id")), row);
  for (const auto& key :
       {keys.content_chunk(ContentRow::chunk, "id", 0), keys.content("id"), keys.config("a"), row})
    EXPECT_EQ(upload_row_of_marker(key), std::nullopt);
  std::string state;
  kv::tuple::Packer(state).integer(1).integer(0);
  for (const auto& value : {state, std::string()})
    EXPECT_EQ(read_upload_row(row, value), (UploadKey{7, "id"}));
  EXPECT_EQ(read_upload_row(keys.upload("id"), ""), std::nullopt);
  EXPECT_THAT(error_of([&] { read_upload_row(row, "x"); }), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace divan::docs
