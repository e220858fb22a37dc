#include "divan/api/document_bodies.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/api/attachment_receiver.h"
#include "divan/api/database_access.h"
#include "divan/api/routes.h"
#include "divan/api/streamed_body.h"
#include "divan/base/json.h"
#include "divan/http/field_list.h"
#include "divan/http/message.h"
#include "divan/http/multipart.h"
#include "divan/kv/chunks.h"

namespace divan::api {
namespace {

constexpr std::string_view kRelated = "multipart/related";

// Of the attachments of a document that are not written before it.
constexpr std::uint64_t kMaxDataBytes = 1'000'000;

using Source = docs::IncomingAttachment::Source;
using Step = http::MultipartReader::Step;

// The attachment whose content is this part: the one with its name, or else the first one that has none yet.
docs::IncomingAttachment& attachment_of(const http::PartHeaders& part,
                                        std::vector<docs::IncomingAttachment>& attachments) {
  const auto name = part.file_name();
  const auto waits = [&](const docs::IncomingAttachment& attachment) {
    return attachment.source == Source::follows && (!name || attachment.name == *name);
  };
  const auto found = std::ranges::find_if(attachments, waits);
  if (found != attachments.end()) return *found;
  // CouchDB writes names without escapes, and goes by the order.
  const auto next = std::ranges::find(attachments, Source::follows, &docs::IncomingAttachment::source);
  if (next != attachments.end()) return *next;
  throw bad_request("More parts follow the document than attachments that it names.");
}

bool is_gzipped(const http::PartHeaders& part, const docs::IncomingAttachment& attachment) {
  return attachment.is_gzipped ||
         http::equal_ignoring_case(part.find("Content-Encoding").value_or(""), "gzip");
}

// A document and its attachments, from the parts of a body.
class RelatedParts {
 public:
  RelatedParts(const Context& context, Call& call, std::string id, bool is_gzipped)
      : context_(context), call_(call), id_(std::move(id)), is_body_gzipped_(is_gzipped) {}

  std::size_t wanted_bytes() const { return receiver_ ? receiver_->wanted_bytes() : kv::kChunkBytes; }

  void begin(const http::PartHeaders& headers) {
    if (!has_document_) return;
    attachment_ = &attachment_of(headers, document_.attachments);
    attachment_->is_gzipped = is_gzipped(headers, *attachment_);
    receiver_.emplace(context_, call_, *attachment_);
  }

  Async<void> add(std::string bytes) {
    if (receiver_) {
      co_await receiver_->add(std::move(bytes));
      if (is_compressed() && unzipped_ + receiver_->length() > context_.catalog.max_attachment_bytes())
        throw docs::attachment_too_large(attachment_->name);
      co_return;
    }
    text_ += bytes;
    if (text_.size() > call_.max_body()) throw Error(413, "too_large", "The document is too large.");
  }

  Async<void> end() {
    if (!std::exchange(has_document_, true)) {
      document_ = docs::parse_document(json::compact(std::exchange(text_, {})));
      document_.id = id_;
      check_before_upload(context_, call_, document_);
      co_return;
    }
    co_await receiver_->finish(kMaxDataBytes - std::min(data_bytes_, kMaxDataBytes));
    data_bytes_ += attachment_->data.size();
    if (is_compressed()) unzipped_ += receiver_->length();
    receiver_.reset();
  }

  docs::IncomingDocument take() {
    if (!has_document_) throw bad_request("The multipart body has no document.");
    return std::move(document_);
  }

 private:
  bool is_compressed() const { return attachment_->is_gzipped || is_body_gzipped_; }

  const Context& context_;
  Call& call_;
  const std::string id_;  // of the document
  const bool is_body_gzipped_;
  bool has_document_ = false;
  std::string text_;  // the document's
  docs::IncomingDocument document_;
  docs::IncomingAttachment* attachment_ = nullptr;  // of `document_`
  std::optional<AttachmentReceiver> receiver_;      // of `attachment_`
  // Of the attachments so far, which were compressed: a small body may expand to terabytes.
  std::uint64_t unzipped_ = 0;
  std::uint64_t data_bytes_ = 0;  // of the attachments so far that are not uploads
};

// Reads a body without its Content-Encoding.
class DecodedBody {
 public:
  DecodedBody(const Context& context, Call& call, bool is_gzipped) : waiter_(context, call) {
    if (is_gzipped) gunzip_.emplace();
  }

  // Reads the next bytes, about as many. Returns false at the end. decoded() is valid until the next call.
  Async<bool> read(std::size_t bytes) {
    for (;;) {
      decoded_ = gunzip_ ? gunzip_->next() : std::string_view();
      if (!decoded_.empty()) co_return true;
      if (part_.is_last) break;
      part_ = co_await read_body(waiter_, bytes);
      if (!gunzip_) {
        decoded_ = part_.data;
        co_return true;
      }
      gunzip_->feed(part_.data);
    }
    if (gunzip_) gunzip_->check_complete();
    co_return false;
  }
  std::string_view decoded() const { return decoded_; }

 private:
  RequestWaiter waiter_;
  std::optional<http::Gunzip> gunzip_;
  http::StreamedBodyPart part_;
  std::string_view decoded_;
};

Async<docs::IncomingDocument> read_related(const Context& context, Call& call, std::string boundary,
                                           std::string id) {
  co_await call.executor().allow_blocking();
  const bool is_gzipped = http::equal_ignoring_case(call.header("Content-Encoding").value_or(""), "gzip");
  http::MultipartReader reader(boundary);
  RelatedParts parts(context, call, std::move(id), is_gzipped);
  DecodedBody body(context, call, is_gzipped);
  for (;;) {
    const auto step = reader.next();
    if (step == Step::end) break;
    if (step == Step::part) parts.begin(reader.headers());
    if (step == Step::data) {
      std::string bytes(reader.data());
      co_await parts.add(std::move(bytes));
    }
    if (step == Step::part_end) co_await parts.end();
    if (step != Step::needs_input) continue;
    const bool is_more = co_await body.read(parts.wanted_bytes());
    if (!is_more) reader.check_complete();
    if (is_more) reader.feed(body.decoded());
  }
  co_return parts.take();
}

}  // namespace

Async<docs::IncomingDocument> document_of(const Context& context, Call& call, std::string id) {
  const auto type = call.header("Content-Type").value_or("");
  if (!http::is_media_type(type, kRelated)) {
    auto document = docs::parse_document(call.json_body());
    document.id = std::move(id);
    co_return document;
  }
  const auto boundary = http::field_parameter(type, "boundary");
  if (!boundary) throw bad_request("The Content-Type of a multipart body must have a boundary.");
  auto document = co_await read_related(context, call, *boundary, std::move(id));
  co_await discard_body(context, call);
  co_await authorize_again(context, call);
  co_return document;
}

bool accepts(const Call& call, std::string_view type) {
  const std::string accepted = call.list_header("Accept");
  const auto types = http::split_list(accepted);
  return std::ranges::any_of(types, [&](std::string_view one) { return http::is_media_type(one, type); });
}

std::string append_with_attachments(kv::Transaction& tx, const docs::Database& database,
                                    std::string_view body, const AppendJson& append, std::uint32_t known,
                                    const std::string& boundary, ContentPlaceholders& placeholders,
                                    std::string& out) {
  auto attachments = docs::attachments_of(body);
  std::erase_if(attachments, [&](const docs::Attachment& attachment) { return attachment.revpos <= known; });
  if (attachments.empty()) {
    append(out, body);
    return "application/json";
  }
  http::MultipartWriter writer(out, boundary);
  writer.begin_part("application/json");
  append(out, docs::with_contents(body, [&](std::string& json, const docs::Attachment& attachment) {
           if (attachment.revpos <= known) return docs::append_stub(json, attachment);
           json += fmt::format(R"("length":{},"follows":true)", attachment.length);
         }));
  for (const auto& attachment : attachments) {
    writer.begin_file(attachment.content_type, attachment.name, attachment.length);
    placeholders.append(tx, database, attachment, ContentPlaceholders::Encoding::none, out);
  }
  writer.end();
  return fmt::format("{}; boundary=\"{}\"", kRelated, boundary);
}

}  // namespace divan::api
