// The request body that writes a document together with its attachments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "divan/replicator/peer.h"

namespace divan::json {
class Writer;
}

namespace divan::replicator {

/// The body of a PUT of a document with contents (multipart/related, RFC 2387;
/// https://docs.couchdb.org/en/stable/api/document/attachments.html). Used by one thread.
class MultipartDocument {
 public:
  /// `document` and `source` must outlive it. `boundary` must not be part of a content.
  MultipartDocument(const LargeDocument& document, Peer& source, std::string boundary);

  std::string content_type() const { return "multipart/related; boundary=\"" + boundary_ + "\""; }
  /// Of the whole body, in bytes.
  std::uint64_t length() const { return length_; }
  /// The next bytes; empty at the end. Throws what the source throws, "bad_response" if a content has another
  /// length than its document says, and not_found if is_gone().
  std::string next();
  /// True if the source no longer has an attachment.
  bool is_gone() const { return is_gone_; }

 private:
  std::string begin_of(std::size_t part) const;
  std::string end() const { return "\r\n--" + boundary_ + "--"; }
  std::string document_json() const;
  void append_attachments(json::Writer& writer, std::string_view attachments) const;

  const LargeDocument& document_;
  Peer& source_;
  const std::string boundary_;
  std::uint64_t length_;
  std::size_t part_ = 0;  // the next one
  std::unique_ptr<ContentReader> reader_;
  std::uint64_t left_ = 0;  // bytes of the reader's content
  bool is_gone_ = false;
  bool is_ended_ = false;
};

}  // namespace divan::replicator
