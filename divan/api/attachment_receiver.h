// Receives attachments of any size in little memory.
#pragma once

#include <optional>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/docs/uploads.h"
#include "divan/http/gzip.h"

namespace divan::api {

/// The content of an attachment to the database of the call's path, which arrives piece by piece. A small one
/// is written with its document, a large one as it arrives. Not thread-safe.
class AttachmentReceiver {
 public:
  /// Of `attachment`, whose name, type and `is_gzipped` are known, and which must outlive this. Throws
  /// attachment_too_large (413) if `length`, that of the content as it is sent, is too large.
  AttachmentReceiver(const Context& context, Call& call, docs::IncomingAttachment& attachment,
                     std::optional<std::uint64_t> length = {});

  /// The bytes that are best added next.
  std::size_t wanted_bytes() const;

  /// The length of what was added, without its encoding.
  std::uint64_t length() const { return length_; }
  /// Adds bytes. Throws attachment_too_large, bad_request if they are no gzip, and what
  /// docs::Upload::write() throws.
  Async<void> add(std::string bytes);
  /// Ends the content, and makes it that of the attachment: as data if it has at most `max_data_bytes`,
  /// otherwise as an upload. Throws content_md5_mismatch (400) if it is not the expected one.
  Async<void> finish(std::uint64_t max_data_bytes);

 private:
  Async<void> add_decoded(std::string bytes);
  void append(std::string bytes);

  const Context& context_;
  Call& call_;
  docs::IncomingAttachment& attachment_;
  std::optional<http::Gunzip> gunzip_;
  std::shared_ptr<docs::Upload> upload_;
  std::string pending_;  // what is not written yet
  std::uint64_t length_ = 0;
};

/// Must be called before documents are written: compresses the data of their attachments, and writes what is
/// too large for the transaction in which the document is written, in transactions of its own.
Async<void> prepare_attachments(const Context& context, Call& call,
                                std::vector<docs::IncomingDocument>& documents);
/// The same without the latter, for documents that must be written in one transaction.
Async<void> compress_attachments(const Context& context, Call& call,
                                 std::vector<docs::IncomingDocument>& documents);

}  // namespace divan::api
