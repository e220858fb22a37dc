#include "divan/docs/contents.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/docs/keys.h"
#include "divan/docs/uploads.h"

namespace divan::docs {
namespace {

// Of the attachments of a document that is one of several in a response.
constexpr std::uint64_t kMaxInlineBytes = 8'000'000;
// A transaction that removes few references to a content that has many does not read the exact number, which
// would conflict with all others that reference the content. There must not be so many such transactions at a
// time that together they remove all.
constexpr std::int64_t kFewReferences = 8;
constexpr std::int64_t kManyReferences = 100'000;

// `row` is that of the content with its MD5.
void check_same(const IncomingAttachment& attachment, std::string_view row) {
  if (decode_content(row).sha256 == attachment.sha256) return;
  throw Error(409, "conflict",
              fmt::format("The database has another attachment with the same MD5 as {}.", attachment.name));
}

}  // namespace

void append_data(kv::Transaction& tx, const Database& database, const Attachment& attachment,
                 std::string& out) {
  const Content content = read_content(tx, database, attachment.md5);
  const auto chunks = kv::chunk_count(content.length);
  out += "\"data\":\"";
  if (chunks > 0) out += to_base64(read_content_chunks(tx, database, content, 0, chunks));
  out += '"';
}

std::string with_attachment_form(kv::Transaction& tx, const Database& database, std::string_view body,
                                 AttachmentForm form) {
  if (form == AttachmentForm::stubs) return std::string(body);
  std::uint64_t bytes = 0;
  return with_contents(body, [&](std::string& out, const Attachment& attachment) {
    if (form == AttachmentForm::encodings) {
      const Content content = read_content(tx, database, attachment.md5);
      if (content.deflated)
        out +=
            fmt::format(R"("encoding":"gzip","encoded_length":{},)", content.deflated->length + kGzipBytes);
      return append_stub(out, attachment);
    }
    bytes += attachment.length;
    if (bytes > kMaxInlineBytes)
      throw Error(413, "too_large",
                  fmt::format("A document has more than {} bytes of attachments: read it by its id.",
                              kMaxInlineBytes));
    append_data(tx, database, attachment, out);
  });
}

std::vector<Attachment> ContentWriter::resolve(const std::vector<IncomingAttachment>& given,
                                               const std::string* replaced, std::string_view document_id,
                                               std::uint32_t generation, bool keep_revpos) {
  std::vector<Attachment> attachments;
  attachments.reserve(given.size());
  std::map<std::string, Attachment, std::less<>> stored;  // of `replaced`
  if (replaced) {
    for (auto& attachment : attachments_of(*replaced)) stored.emplace(attachment.name, attachment);
  }
  for (const auto& attachment : given) {
    if (attachment.source == IncomingAttachment::Source::stub) {
      const auto found = stored.find(attachment.name);
      if (found == stored.end() || (attachment.revpos && *attachment.revpos != found->second.revpos)) {
        throw Error(412, "missing_stub",
                    fmt::format("Invalid attachment stub in {} for {}", document_id, attachment.name));
      }
      attachments.push_back(found->second);
      continue;
    }
    const auto row = tx_.get(database_.keys().content(attachment.md5));
    if (!row && attachment.source == IncomingAttachment::Source::stored) throw conflict();
    if (row && attachment.source != IncomingAttachment::Source::stored) check_same(attachment, *row);
    const bool keeps = keep_revpos && attachment.revpos && *attachment.revpos > 0;
    attachments.push_back({.name = attachment.name,
                           .content_type = attachment.content_type,
                           .revpos = keeps ? std::min(*attachment.revpos, generation) : generation,
                           .md5 = attachment.md5,
                           .length = attachment.length});
  }
  return attachments;
}

void ContentWriter::store(const std::vector<IncomingAttachment>& given) {
  for (const auto& attachment : given) {
    const bool is_upload = attachment.source == IncomingAttachment::Source::uploaded;
    if (!is_upload && attachment.source != IncomingAttachment::Source::data) continue;
    const auto references = references_.find(attachment.md5);
    if (references == references_.end() || references->second <= 0) continue;
    const std::string key = database_.keys().content(attachment.md5);
    if (const auto row = tx_.get(key)) {
      check_same(attachment, *row);
      continue;
    }
    if (is_upload) {
      tx_.set(key, encode_content(attachment.upload->content()));
      attachment.upload->finish(tx_, database_);
    } else {
      tx_.set(key, encode_content(write_data(attachment)));
    }
    bytes_ += static_cast<std::int64_t>(attachment.length);
  }
}

Content ContentWriter::write_data(const IncomingAttachment& attachment) {
  Content content{.id = attachment.sha256, .length = attachment.length, .sha256 = attachment.sha256};
  if (!attachment.deflated.empty()) content.deflated = {attachment.data_bytes(), attachment.crc32};
  const auto write = [&](std::uint32_t chunk, std::string_view piece) {
    tx_.set(database_.keys().content_chunk(content.row(), content.id, chunk), piece);
  };
  kv::for_each_chunk(attachment.data, write);
  for (std::uint32_t i = 0; i < attachment.deflated.size(); ++i) write(i, attachment.deflated[i]);
  return content;
}

void ContentWriter::finish() {
  for (const auto& [md5, change] : references_) {
    if (change > 0) tx_.add(database_.keys().content_references(md5), change);
    if (change < 0) release(md5, change);
  }
  if (bytes_ != 0) tx_.add(database_.keys().stat("attachment_bytes"), bytes_);
}

void ContentWriter::release(const std::string& md5, std::int64_t change) {
  const std::string key = database_.keys().content_references(md5);
  const bool is_one_of_many =
      -change <= kFewReferences &&
      kv::decode_counter(tx_.get(key, kv::Isolation::snapshot)) + change > kManyReferences;
  if (is_one_of_many || kv::decode_counter(tx_.get(key)) + change > 0) return tx_.add(key, change);
  tx_.clear(key);
  // Without its row, the store is damaged; the document can be removed all the same.
  const auto row = tx_.get(database_.keys().content(md5));
  if (!row) return;
  const Content content = decode_content(*row);
  tx_.clear(database_.keys().content(md5));
  tx_.clear_range(database_.keys().content_chunks(content.row(), content.id));
  bytes_ -= static_cast<std::int64_t>(content.length);
}

}  // namespace divan::docs
