#include "divan/api/document_bodies.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/json.h"
#include "divan/docs/contents.h"
#include "divan/http/field_list.h"
#include "divan/http/gzip.h"
#include "divan/http/message.h"
#include "divan/http/multipart.h"
#include "divan/kv/chunks.h"

namespace divan::api {
namespace {

constexpr std::string_view kRelated = "multipart/related";

using Source = docs::IncomingAttachment::Source;

// The attachment whose content is this part: the one with its name, or else the first one that has none yet.
docs::IncomingAttachment& attachment_of(const http::BodyPart& part,
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

bool is_gzipped(const http::BodyPart& part, const docs::IncomingAttachment& attachment) {
  return attachment.is_gzipped ||
         http::equal_ignoring_case(part.header("Content-Encoding").value_or(""), "gzip");
}

docs::IncomingDocument parse_related(std::string_view body, std::string_view boundary) {
  const auto parts = http::parse_multipart(body, boundary);
  auto document = docs::parse_document(json::compact(parts.empty() ? "" : parts.front().body));
  // A small part may expand to gigabytes: the document's limit holds for all of them.
  std::size_t left = docs::kMaxDocumentBytes;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    auto& attachment = attachment_of(parts[i], document.attachments);
    std::string content;
    if (is_gzipped(parts[i], attachment)) {
      content = http::gunzip(parts[i].body, left);
    } else if (parts[i].body.size() <= left) {
      content = parts[i].body;
    } else {
      throw Error(413, "attachment_too_large", docs::too_large_reason(document.id));
    }
    left -= content.size();
    attachment.set_data(std::move(content));
  }
  return document;
}

}  // namespace

docs::IncomingDocument document_of(Call& call) {
  const auto type = call.header("Content-Type").value_or("");
  if (!http::is_media_type(type, kRelated)) return docs::parse_document(call.json_body());
  const auto boundary = http::field_parameter(type, "boundary");
  if (!boundary) throw bad_request("The Content-Type of a multipart body must have a boundary.");
  return parse_related(call.body(), *boundary);
}

bool accepts(const Call& call, std::string_view type) {
  const auto types = http::split_list(call.header("Accept").value_or(""));
  return std::ranges::any_of(types, [&](std::string_view one) { return http::is_media_type(one, type); });
}

std::string append_with_attachments(kv::Transaction& tx, const docs::Database& database,
                                    std::string_view body, const AppendJson& append,
                                    const std::string& boundary, std::string& out) {
  const auto attachments = docs::attachments_of(body);
  if (attachments.empty()) {
    append(out, body);
    return "application/json";
  }
  http::MultipartWriter writer(out, boundary);
  writer.begin_part("application/json");
  append(out, docs::with_contents(body, [](std::string& json, const docs::Attachment& attachment) {
           json += fmt::format(R"("length":{},"follows":true)", attachment.length);
         }));
  for (const auto& attachment : attachments) {
    writer.begin_file(attachment.content_type, attachment.name, attachment.length);
    const auto content = docs::read_content(tx, database, attachment.md5);
    const auto chunks = kv::chunk_count(content.length);
    if (chunks > 0) out += docs::read_content_chunks(tx, database, content, 0, chunks);
  }
  writer.end();
  return fmt::format("{}; boundary=\"{}\"", kRelated, boundary);
}

}  // namespace divan::api
