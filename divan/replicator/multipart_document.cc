#include "divan/replicator/multipart_document.h"

#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/replicator/responses.h"

namespace divan::replicator {

MultipartDocument::MultipartDocument(const LargeDocument& document, Peer& source, std::string boundary)
    : document_(document), source_(source), boundary_(std::move(boundary)), length_(end().size()) {
  for (std::size_t i = 0; i <= document_.contents.size(); ++i) length_ += begin_of(i).size();
  length_ += total_length(document_.contents);
}

std::string MultipartDocument::next() {
  if (reader_) {
    auto bytes = reader_->next();
    if (bytes.empty() ? left_ > 0 : bytes.size() > left_)
      throw bad_response("has another length of an attachment than its document says");
    left_ -= bytes.size();
    if (!bytes.empty()) return bytes;
    reader_.reset();
  }
  if (part_ > document_.contents.size()) return std::exchange(is_ended_, true) ? "" : end();
  if (part_ > 0) {
    const auto& content = document_.contents[part_ - 1];
    left_ = content.length;
    reader_ = source_.open_content(document_, content);
    if (!reader_) {
      is_gone_ = true;
      throw not_found();
    }
  }
  return begin_of(part_++);
}

// What precedes a content: 0 is the document.
std::string MultipartDocument::begin_of(std::size_t part) const {
  if (part == 0) return "--" + boundary_ + "\r\nContent-Type: application/json\r\n\r\n" + document_json();
  return "\r\n--" + boundary_ + "\r\n\r\n";
}

// With `follows` for the contents that follow.
std::string MultipartDocument::document_json() const {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  json::for_each_member(document_.json, [&](std::string_view raw_name, std::string_view value) {
    const auto name = json::unescape(raw_name);
    writer.key(name);
    name == "_attachments" ? append_attachments(writer, value) : static_cast<void>(writer.raw(value));
    return true;
  });
  writer.end_object();
  return out;
}

// Contents follow in the order of their names here, which is that of `contents`.
void MultipartDocument::append_attachments(json::Writer& writer, std::string_view attachments) const {
  writer.begin_object();
  auto content = document_.contents.begin();
  json::for_each_member(attachments, [&](std::string_view raw_name, std::string_view stub) {
    const auto name = json::unescape(raw_name);
    writer.key(name);
    if (content == document_.contents.end() || content->name != name) {
      writer.raw(stub);
      return true;
    }
    writer.begin_object().key("content_type").string(content->type);
    if (const auto revpos = json::member(stub, "revpos")) writer.key("revpos").raw(*revpos);
    writer.key("length").number(static_cast<std::int64_t>(content->length));
    writer.key("follows").boolean(true).end_object();
    ++content;
    return true;
  });
  writer.end_object();
}

}  // namespace divan::replicator
