#include "divan/api/attachment_receiver.h"

#include <algorithm>

#include "divan/docs/document.h"
#include "divan/kv/chunks.h"

namespace divan::api {
namespace {

// Of the data of a document's attachments in the document's transaction.
constexpr std::uint64_t kMaxDataBytes = docs::kMaxDocumentBytes / 2;

constexpr std::size_t kWriteBytes = 10 * kv::kChunkBytes;

// Of a request whose data are compressed on the thread on which it arrives, in less than a millisecond.
constexpr std::uint64_t kQuicklyCompressed = 4096;

// What Catalog::check_document() allows.
std::uint64_t max_data_bytes(const docs::IncomingDocument& document) {
  std::uint64_t others = document.body.size();
  for (const auto& attachment : document.attachments)
    others += attachment.name.size() + attachment.content_type.size() + docs::kAttachmentRowsBytes;
  return others >= docs::kMaxDocumentBytes ? 0 : std::min(docs::kMaxDocumentBytes - others, kMaxDataBytes);
}

int compression_level(const Context& context, const docs::IncomingAttachment& attachment) {
  return context.catalog.compression_level(attachment.content_type, attachment.is_gzipped);
}

std::shared_ptr<docs::Upload> upload_of(const Context& context, const Call& call,
                                        const docs::IncomingAttachment& attachment) {
  return std::make_shared<docs::Upload>(context.uploads, call.path()[0],
                                        compression_level(context, attachment));
}

Async<docs::EncodedChunks> encode(const Context& context, Call& call, const docs::Upload& upload,
                                  std::string_view bytes) {
  if (!upload.is_compressed()) co_return upload.encode(bytes);
  const auto permit = co_await context.uploads.compressions().acquire(call.executor());
  co_return upload.encode(bytes);
}

// Writes bytes in as many transactions as needed: whole chunks, except at the content's end.
Async<void> write(const Context& context, Call& call, docs::Upload& upload, std::string_view bytes) {
  co_await call.executor().allow_blocking();
  for (std::size_t at = 0; at < bytes.size(); at += kWriteBytes) {
    const auto chunks = co_await encode(context, call, upload, bytes.substr(at, kWriteBytes));
    {
      const auto permit = co_await context.uploads.writes().acquire(call.executor());
      co_await call.run(context.store, [&](kv::Transaction& tx) { upload.write(tx, chunks); });
    }
    upload.written(chunks);
  }
}

// The attachments whose data are to be compressed, and the levels.
std::vector<std::pair<docs::IncomingAttachment*, int>> compressible(
    const Context& context, std::vector<docs::IncomingDocument>& documents) {
  std::vector<std::pair<docs::IncomingAttachment*, int>> found;
  for (auto& document : documents) {
    for (auto& attachment : document.attachments) {
      if (attachment.data.empty()) continue;
      if (const int level = compression_level(context, attachment); level > 0)
        found.emplace_back(&attachment, level);
    }
  }
  return found;
}

}  // namespace

AttachmentReceiver::AttachmentReceiver(const Context& context, Call& call,
                                       docs::IncomingAttachment& attachment,
                                       std::optional<std::uint64_t> length)
    : context_(context), call_(call), attachment_(attachment), upload_(upload_of(context, call, attachment)) {
  if (attachment.is_gzipped) {
    gunzip_.emplace();
  } else if (length.value_or(0) > context.catalog.max_attachment_bytes()) {
    throw docs::attachment_too_large(attachment.name);
  }
}

Async<void> AttachmentReceiver::add(std::string bytes) {
  if (!gunzip_) co_return co_await add_decoded(std::move(bytes));
  gunzip_->feed(bytes);
  for (std::string piece(gunzip_->next()); !piece.empty(); piece = gunzip_->next())
    co_await add_decoded(std::move(piece));
}

std::size_t AttachmentReceiver::wanted_bytes() const {
  // No more than a chunk: there may be more uploads, and the pieces smaller, when it has arrived.
  const std::size_t piece = context_.uploads.piece_bytes();
  return piece > pending_.size() ? std::min(piece - pending_.size(), kv::kChunkBytes) : 1;
}

void AttachmentReceiver::append(std::string bytes) {
  length_ += bytes.size();
  if (length_ > context_.catalog.max_attachment_bytes()) throw docs::attachment_too_large(attachment_.name);
  if (pending_.empty()) {
    pending_ = std::move(bytes);
  } else {
    pending_ += bytes;
  }
}

Async<void> AttachmentReceiver::add_decoded(std::string bytes) {
  append(std::move(bytes));  // while the chunks are written, only pending_ holds them
  if (pending_.size() < context_.uploads.piece_bytes()) co_return;
  const std::size_t whole_chunks = pending_.size() / kv::kChunkBytes * kv::kChunkBytes;
  co_await write(context_, call_, *upload_, std::string_view(pending_).substr(0, whole_chunks));
  // Frees the memory of what was written: a string keeps its own when a short one is assigned to it.
  std::string(pending_, whole_chunks).swap(pending_);
}

Async<void> AttachmentReceiver::finish(std::uint64_t max_data_bytes) {
  if (gunzip_) gunzip_->check_complete();
  if (upload_->length() == 0 && pending_.size() <= max_data_bytes) {
    attachment_.set_data(std::move(pending_));
  } else {
    co_await write(context_, call_, *upload_, pending_);
    docs::set_upload(attachment_, std::move(upload_));
  }
  if (attachment_.expected_md5.value_or(attachment_.md5) != attachment_.md5)
    throw Error(400, "content_md5_mismatch", "Possible message corruption.");
}

Async<void> compress_attachments(const Context& context, Call& call,
                                 std::vector<docs::IncomingDocument>& documents) {
  const auto attachments = compressible(context, documents);
  std::uint64_t bytes = 0;
  for (const auto& [attachment, level] : attachments) bytes += attachment->data.size();
  if (bytes <= kQuicklyCompressed) {
    for (const auto& [attachment, level] : attachments) docs::compress(*attachment, level);
    co_return;
  }
  co_await call.executor().allow_blocking();
  for (const auto& [attachment, level] : attachments) {
    const auto permit = co_await context.uploads.compressions().acquire(call.executor());
    docs::compress(*attachment, level);
  }
}

Async<void> prepare_attachments(const Context& context, Call& call,
                                std::vector<docs::IncomingDocument>& documents) {
  for (auto& document : documents) {
    const std::uint64_t limit = max_data_bytes(document);
    auto left = docs::data_bytes(document.attachments);
    if (left <= limit) continue;
    std::vector<docs::IncomingAttachment*> by_size;
    for (auto& attachment : document.attachments) by_size.push_back(&attachment);
    std::ranges::sort(by_size, std::greater(),
                      [](const auto* attachment) { return attachment->data.size(); });
    for (auto* attachment : by_size) {
      if (left <= limit) break;
      if (attachment->data.size() > context.catalog.max_attachment_bytes()) break;  // it will be refused
      left -= attachment->data.size();
      const auto upload = upload_of(context, call, *attachment);
      co_await write(context, call, *upload, attachment->data);
      docs::set_upload(*attachment, upload);
    }
  }
  co_await compress_attachments(context, call, documents);
}

}  // namespace divan::api
