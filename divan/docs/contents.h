// The contents of attachments.
//
// Contents are stored once in a database, by their MD5, which is the `digest` that CouchDB's clients know,
// and their references are counted. Since MD5 has collisions, a content is only taken for a stored one if
// their SHA-256 is equal, too.
#pragma once

#include <map>

#include "divan/docs/attachment.h"
#include "divan/docs/catalog.h"

namespace divan::docs {

/// A content of a database.
struct Content {
  std::string id;  ///< of its chunks
  std::uint64_t length = 0;
  std::string sha256;
};

/// Decodes the row of a content; throws an internal error if it is damaged.
Content decode_content(std::string_view value);

std::string encode_content(const Content& content);

/// Throws an internal error if there is none.
Content read_content(kv::Transaction& tx, const Database& database, std::string_view md5,
                     kv::Isolation isolation = kv::Isolation::snapshot);
/// A part of a content: chunks from `first` on, each of kv::kChunkBytes. Throws an internal error if one is
/// missing, since the content was removed or is damaged.
std::string read_content_chunks(kv::Transaction& tx, const Database& database, const Content& content,
                                std::uint32_t first, std::uint32_t count);

/// `body` with the data of its attachments, in base64, instead of stubs; those that were attached up to the
/// generation `known` stay stubs. Throws too_large (413) if the data have more than 8,000,000 bytes.
std::string with_attachment_data(kv::Transaction& tx, const Database& database, std::string_view body,
                                 std::uint32_t known = 0);

/// The changes that one transaction makes to a database's contents. Not thread-safe.
class ContentWriter {
 public:
  ContentWriter(kv::Transaction& tx, const Database& database) : tx_(tx), database_(database) {}

  /// The attachments of a revision that is to be written: `given`, the stubs among them from `replaced`, the
  /// body of the revision that it replaces (nullptr: none). Throws missing_stub (412); conflict (409) if a
  /// content is not stored any more, or is another one with the same MD5.
  std::vector<Attachment> resolve(const std::vector<IncomingAttachment>& given, const std::string* replaced,
                                  std::string_view document_id, std::uint32_t generation, bool keep_revpos);
  /// Counts the references of a revision that is written.
  void add_references(const std::vector<Attachment>& attachments) { count(attachments, 1); }
  /// Writes the contents of `given` that are not stored yet, and have been referenced since. Throws as
  /// Upload::finish().
  void store(const std::vector<IncomingAttachment>& given);
  /// The same for one that is removed.
  void remove_references(const std::vector<Attachment>& attachments) { count(attachments, -1); }

  /// Writes the counts, and removes contents without references. Must be called once, before the commit.
  void finish();

 private:
  void count(const std::vector<Attachment>& attachments, std::int64_t by) {
    for (const auto& attachment : attachments) references_[attachment.md5] += by;
  }
  void release(const std::string& md5, std::int64_t references);

  kv::Transaction& tx_;
  const Database& database_;
  std::map<std::string, std::int64_t> references_;  // by MD5
  std::int64_t bytes_ = 0;
};

}  // namespace divan::docs
