// The contents that the attachments of documents refer to.
//
// Contents are stored once in a database, by their MD5, which is the `digest` that CouchDB's clients know,
// and their references are counted. Since MD5 has collisions, a content is only taken for a stored one if
// their SHA-256 is equal, too.
#pragma once

#include <map>

#include "divan/docs/attachment.h"
#include "divan/docs/stored_content.h"

namespace divan::docs {

/// What a document shows of its attachments: stubs, stubs with the encoding of those that are compressed, or
/// their data in base64.
enum class AttachmentForm { stubs, encodings, data };
/// The form that these parameters of a request ask for.
constexpr AttachmentForm attachment_form(bool attachments, bool att_encoding_info) {
  if (attachments) return AttachmentForm::data;
  return att_encoding_info ? AttachmentForm::encodings : AttachmentForm::stubs;
}

/// Appends the data of an attachment in base64: `"data":"aGVsbG8="`. Throws an internal error if its content
/// is missing.
void append_data(kv::Transaction& tx, const Database& database, const Attachment& attachment,
                 std::string& out);

/// `body`, which has stubs, with its attachments in this form. Throws too_large (413) if the data have more
/// than 8,000,000 bytes.
std::string with_attachment_form(kv::Transaction& tx, const Database& database, std::string_view body,
                                 AttachmentForm form);

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
  Content write_data(const IncomingAttachment& attachment);
  void release(const std::string& md5, std::int64_t references);

  kv::Transaction& tx_;
  const Database& database_;
  std::map<std::string, std::int64_t> references_;  // by MD5
  std::int64_t bytes_ = 0;
};

}  // namespace divan::docs
