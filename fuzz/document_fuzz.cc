// A document from a client: an error, or parts that are unchanged after a round trip. Its revisions,
// sequences and ids are also parsed from arbitrary text.
#include "divan/docs/document.h"

#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "fuzz/check.h"

namespace {

namespace docs = divan::docs;
namespace json = divan::json;
using divan::fuzz::answers;
using divan::fuzz::check;

void check_revision(std::string_view text) {
  const auto revision = docs::Revision::parse(text);
  check(revision.has_value() == answers(400, [&] { docs::parse_revision(text); }));
  if (!revision) return;
  check(divan::is_utf8(revision->to_string()));
  check(docs::Revision::parse(revision->to_string()) == revision);
}

void check_sequence(std::string_view text) {
  divan::kv::Versionstamp stamp;
  if (!answers(400, [&] { stamp = docs::parse_sequence(text); })) return;
  check(docs::parse_sequence(docs::to_sequence(stamp)) == stamp);
}

void check_path(const docs::RevisionPath& path) {
  check(!path.ids.empty() && path.ids.size() <= docs::kMaxGivenRevisions);
  for (std::size_t i = 0; i < path.ids.size(); ++i) {
    check(path.contains({static_cast<std::uint32_t>(path.generation - i), path.ids[i]}));
  }
  std::string text;
  docs::append_revisions(text, path);
  check(json::compact(text) == text && docs::parse_revisions(text) == path);
}

docs::Leaf leaf_of(const docs::IncomingDocument& document) {
  docs::Leaf leaf;
  leaf.deleted = document.deleted;
  if (document.revisions) {
    leaf.path = *document.revisions;
  } else {
    const auto revision = document.revision.value_or(docs::Revision{1, "a"});
    leaf.path = {revision.generation, {revision.id}};
  }
  return leaf;
}

// Attachments as they are stored are found again, and the body without them is the same.
void check_attachments(const docs::IncomingDocument& document) {
  std::vector<docs::Attachment> attachments;
  for (const auto& given : document.attachments) {
    check(divan::is_utf8(given.name) && !given.name.starts_with('_'));
    docs::Attachment attachment{given.name, given.content_type, given.revpos.value_or(1), given.md5,
                                given.length};
    attachment.md5.resize(16);
    attachments.push_back(std::move(attachment));
  }
  const std::string stored = docs::with_attachments(document.body, attachments);
  check(json::compact(stored) == stored && docs::without_attachments(stored) == document.body);
  const auto again = docs::attachments_of(stored);
  check(again.size() == attachments.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    check(again[i].name == attachments[i].name && again[i].content_type == attachments[i].content_type);
    check(again[i].md5 == attachments[i].md5 && again[i].length == attachments[i].length);
  }
}

void check_document(const docs::IncomingDocument& document) {
  check_attachments(document);
  check(json::compact(document.body) == document.body);
  json::for_each_member(document.body, [](std::string_view name, std::string_view) {
    const auto unescaped = json::unescape(name);
    check(!unescaped.starts_with('_') || unescaped.starts_with("_replication_"));
    return true;
  });
  if (!document.id.empty()) docs::check_document_id(document.id);
  if (document.revisions) check_path(*document.revisions);

  const docs::Leaf leaf = leaf_of(document);
  docs::RevTree tree = {leaf, leaf};
  tree[1].path.ids.front() += "'";
  tree[1].deleted = !leaf.deleted;
  const docs::DocumentOptions all{true, true, true, true, true};
  std::string shown;
  docs::append_document(shown, document.id.empty() ? "id" : document.id, leaf, document.body, tree, all);
  check(json::compact(shown) == shown);
  const auto again = docs::parse_document(shown);
  check(again.id == (document.id.empty() ? "id" : document.id) && again.body == document.body);
  check(again.deleted == document.deleted && again.revision == leaf.revision());
  check(again.revisions == leaf.path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  check_revision(text);
  check_sequence(text);
  if (answers(400, [&] { docs::check_document_id(text); })) check(divan::is_utf8(text));
  std::string compact;
  if (!answers(400, [&] { compact = json::compact(text); })) return 0;
  try {
    check_document(docs::parse_document(compact));
  } catch (const divan::Error& error) {
    check(error.status() == 400 || error.status() == 501);
    check(divan::is_utf8(error.reason()));
  }
  return 0;
}
