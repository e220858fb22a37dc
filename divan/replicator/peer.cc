#include "divan/replicator/peer.h"

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/document.h"

namespace divan::replicator {
namespace {

// The generation of the latest ancestor on the path; 0 if none is on it, or the path is invalid: the target
// will refuse the document.
std::int64_t known_generation(std::string_view json, std::span<const docs::Revision> ancestors) {
  const auto revisions = json::member(json, "_revisions");
  if (!revisions) return 0;
  docs::RevisionPath path;
  try {
    path = docs::parse_revisions(*revisions);
  } catch (const Error&) { return 0; }
  std::int64_t known = 0;
  for (const auto& ancestor : ancestors) {
    if (path.contains(ancestor)) known = std::max<std::int64_t>(known, ancestor.generation);
  }
  return known;
}

}  // namespace

std::vector<AttachmentContent> lacking_contents(std::string_view json,
                                                std::span<const docs::Revision> ancestors) {
  std::vector<AttachmentContent> contents;
  const auto attachments = json::member(json, "_attachments");
  if (!attachments) return contents;
  const auto known = known_generation(json, ancestors);
  json::for_each_member(*attachments, [&](std::string_view raw_name, std::string_view stub) {
    const auto revpos = json::int_value(json::member(stub, "revpos").value_or("")).value_or(INT64_MAX);
    if (revpos <= known) return true;
    const auto length = json::int_value(json::member(stub, "length").value_or("")).value_or(0);
    contents.push_back({json::unescape(raw_name),
                        json::string_value(json::member(stub, "content_type").value_or("")).value_or(""),
                        static_cast<std::uint64_t>(std::max<std::int64_t>(length, 0))});
    return true;
  });
  return contents;
}

std::string_view shown_text(std::string_view text, std::size_t max_bytes) {
  return is_utf8(text) ? utf8_prefix(text, max_bytes) : "(the text is not UTF-8)";
}

std::uint64_t total_length(std::span<const AttachmentContent> contents) {
  std::uint64_t bytes = 0;
  for (const auto& content : contents) bytes += content.length;
  return bytes;
}

}  // namespace divan::replicator
