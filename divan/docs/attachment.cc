#include "divan/docs/attachment.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"

namespace divan::docs {
namespace {

// Of a stored body with attachments.
constexpr std::string_view kBodyStart = R"({"_attachments":)";
constexpr std::string_view kDigestPrefix = "md5-";
constexpr std::size_t kMd5Bytes = 16;

Error damaged() { return internal_error("The attachments of a document in the store are damaged."); }
Error invalid(const char* reason) { return {400, "doc_validation", reason}; }

// The MD5 in a stub's `digest`; nullopt if it is missing or malformed.
std::optional<std::string> parse_digest(std::optional<std::string_view> json) {
  const auto digest = json::string_value(json.value_or(""));
  if (!digest || !digest->starts_with(kDigestPrefix)) return std::nullopt;
  auto md5 = from_base64(digest->substr(kDigestPrefix.size()));
  return md5 && md5->size() == kMd5Bytes ? md5 : std::nullopt;
}

IncomingAttachment parse_attachment(std::string name, std::string_view text) {
  if (!text.starts_with('{')) throw invalid("Bad special document member: _attachments");
  check_attachment_name(name);
  const json::Members members = json::members_of(text);
  IncomingAttachment attachment{.name = std::move(name)};
  if (const auto type = json::find(members, "content_type")) {
    const auto content_type = json::string_value(*type);
    if (!content_type)
      throw bad_request("content_type of attachment " + attachment.name + " must be a string.");
    check_content_type(*content_type);
    attachment.content_type = *content_type;
  }
  if (const auto revpos = json::find(members, "revpos")) {
    const auto number = json::int_value(*revpos);
    if (!number || *number < 0 || *number > UINT32_MAX)
      throw bad_request("revpos of attachment " + attachment.name + " must be a number.");
    attachment.revpos = static_cast<std::uint32_t>(*number);
  }
  if (json::find(members, "follows") == "true") {
    attachment.source = IncomingAttachment::Source::follows;
    attachment.is_gzipped = json::find(members, "encoding") == R"("gzip")";
    // With an encoding, the digest is that of the encoded content.
    if (!attachment.is_gzipped) attachment.expected_md5 = parse_digest(json::find(members, "digest"));
    return attachment;
  }
  if (json::find(members, "stub") == "true") {
    attachment.source = IncomingAttachment::Source::stub;
    return attachment;
  }
  const auto base64 = json::string_value(json::find(members, "data").value_or(""));
  auto data = base64 ? from_base64(*base64) : std::nullopt;
  if (!data) throw bad_request("Invalid attachment data for " + attachment.name);
  attachment.set_data(*std::move(data));
  return attachment;
}

Attachment parse_stub(std::string name, std::string_view json) {
  Attachment attachment{.name = std::move(name)};
  auto type = json::string_value(json::member(json, "content_type").value_or(""));
  const auto revpos = json::int_value(json::member(json, "revpos").value_or(""));
  const auto length = json::int_value(json::member(json, "length").value_or(""));
  auto md5 = parse_digest(json::member(json, "digest"));
  if (!type || !revpos || *revpos < 0 || *revpos > UINT32_MAX || !length || *length < 0 || !md5)
    throw damaged();
  attachment.content_type = *std::move(type);
  attachment.revpos = static_cast<std::uint32_t>(*revpos);
  attachment.length = static_cast<std::uint64_t>(*length);
  attachment.md5 = *std::move(md5);
  return attachment;
}

void append_attachment(std::string& out, const Attachment& attachment, const AppendContent& append) {
  if (!out.ends_with('{')) out += ',';
  json::append_string(out, attachment.name);
  out += ":{\"content_type\":";
  json::append_string(out, attachment.content_type);
  out += fmt::format(R"(,"revpos":{},"digest":"{}",)", attachment.revpos, digest_text(attachment.md5));
  append(out, attachment);
  out += '}';
}

// The body without `_attachments`, from the comma or the brace after it.
std::string_view after_attachments(std::string_view body) {
  const auto member = json::member(body, "_attachments");
  if (!member) throw damaged();
  return body.substr(static_cast<std::size_t>(member->data() + member->size() - body.data()));
}

std::string compose(const std::vector<Attachment>& attachments, std::string_view rest,
                    const AppendContent& append) {
  std::string out(kBodyStart);
  out += '{';
  for (const auto& attachment : attachments) append_attachment(out, attachment, append);
  out += '}';
  out += rest;
  return out;
}

}  // namespace

void IncomingAttachment::set_data(std::string bytes) {
  source = Source::data;
  data = std::move(bytes);
  md5 = divan::md5(data);
  sha256 = divan::sha256(data);
  length = data.size();
}

std::uint64_t IncomingAttachment::data_bytes() const {
  std::uint64_t bytes = data.size();
  for (const auto& chunk : deflated) bytes += chunk.size();
  return bytes;
}

IncomingAttachment IncomingAttachment::of(const Attachment& stored) {
  return {.name = stored.name,
          .content_type = stored.content_type,
          .revpos = stored.revpos,
          .source = Source::stored,
          .md5 = stored.md5,
          .length = stored.length};
}

std::vector<IncomingAttachment> parse_attachments(std::string_view json) {
  std::vector<IncomingAttachment> attachments;
  const bool is_object = json::for_each_member(json, [&](std::string_view raw_name, std::string_view value) {
    attachments.push_back(parse_attachment(json::unescape(raw_name), value));
    return true;
  });
  if (!is_object) throw invalid("Bad special document member: _attachments");
  return attachments;
}

void check_attachment_name(std::string_view name) {
  if (name.empty()) throw bad_request("An attachment must have a name.");
  if (!is_utf8(name)) throw bad_request("Attachment name is not UTF-8 encoded");
  if (name.starts_with('_')) {
    throw bad_request(fmt::format("Attachment name '{}' starts with prohibited character '_'", name));
  }
}

void check_content_type(std::string_view type) {
  if (has_control(type) || !is_utf8(type))
    throw bad_request("The type of an attachment must be UTF-8 without control characters.");
}

std::string digest_text(std::string_view md5) { return std::string(kDigestPrefix) + to_base64(md5); }

std::vector<Attachment> attachments_of(std::string_view body) {
  std::vector<Attachment> attachments;
  if (!body.starts_with(kBodyStart)) return attachments;
  const auto member = json::member(body, "_attachments");
  if (!member) throw damaged();
  const bool is_object = json::for_each_member(*member, [&](std::string_view name, std::string_view stub) {
    attachments.push_back(parse_stub(json::unescape(name), stub));
    return true;
  });
  if (!is_object || attachments.empty()) throw damaged();
  return attachments;
}

std::optional<Attachment> find_attachment(std::string_view body, std::string_view name) {
  auto attachments = attachments_of(body);
  const auto found = std::ranges::find_if(
      attachments, [&](const Attachment& attachment) { return attachment.name == name; });
  if (found == attachments.end()) return std::nullopt;
  return std::move(*found);
}

void append_stub(std::string& out, const Attachment& attachment) {
  out += fmt::format(R"("length":{},"stub":true)", attachment.length);
}

std::string with_attachments(std::string_view body, const std::vector<Attachment>& attachments) {
  if (attachments.empty()) return std::string(body);
  DIVAN_CHECK(body.starts_with('{') && !body.starts_with(kBodyStart), "a body has attachments already");
  const std::string rest = (body.size() > 2 ? "," : "") + std::string(body.substr(1));
  return compose(attachments, rest, append_stub);
}

std::string without_attachments(std::string_view body) {
  if (!body.starts_with(kBodyStart)) return std::string(body);
  const auto rest = after_attachments(body);
  return '{' + std::string(rest.starts_with(',') ? rest.substr(1) : rest);
}

std::string with_contents(std::string_view body, const AppendContent& append) {
  const auto attachments = attachments_of(body);
  if (attachments.empty()) return std::string(body);
  return compose(attachments, after_attachments(body), append);
}

std::uint64_t data_bytes(const std::vector<IncomingAttachment>& attachments) {
  std::uint64_t bytes = 0;
  for (const auto& attachment : attachments) bytes += attachment.data_bytes();
  return bytes;
}

}  // namespace divan::docs
