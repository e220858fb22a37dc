#include "divan/docs/validation.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"

namespace divan::docs {
namespace {

Error damaged(std::string_view list) {
  return internal_error("Damaged list of validating design documents: " + std::string(list));
}

// The attachments as they will be stored, as far as that is known; the names of others are omitted.
std::vector<Attachment> attachments_to_show(const IncomingDocument& document,
                                            const std::string& replaced_body, std::uint32_t generation) {
  std::vector<Attachment> shown;
  const auto before = replaced_body.empty() ? std::vector<Attachment>() : attachments_of(replaced_body);
  for (const auto& incoming : document.attachments) {
    if (incoming.source == IncomingAttachment::Source::stub) {
      const auto found = std::ranges::find(before, incoming.name, &Attachment::name);
      if (found != before.end()) shown.push_back(*found);
      continue;
    }
    const std::uint64_t length =
        incoming.source == IncomingAttachment::Source::data ? incoming.data.size() : incoming.length;
    shown.push_back(
        {incoming.name, incoming.content_type, incoming.revpos.value_or(generation), incoming.md5, length});
  }
  return shown;
}

// As CouchDB shows it: an edit has the revision that it replaces.
std::string document_json(const IncomingDocument& document, const std::string& replaced_body,
                          std::uint32_t generation) {
  std::string body = document.body;
  if (const auto shown = attachments_to_show(document, replaced_body, generation); !shown.empty())
    body = with_attachments(body, shown);
  std::string json = "{\"_id\":" + json::quoted(document.id);
  if (document.revision) json += ",\"_rev\":" + json::quoted(document.revision->to_string());
  if (document.deleted) json += ",\"_deleted\":true";
  if (document.revision) {
    json += ",\"_revisions\":";
    append_revisions(json, document.revisions.value_or(
                               RevisionPath{document.revision->generation, {document.revision->id}}));
  }
  if (body.size() > 2) json.append(",").append(body, 1, body.size() - 2);
  return json + '}';
}

// With the newest revisions only, as in CouchDB.
void append_with_revisions(std::string& out, std::string_view id, Leaf leaf, std::string_view body) {
  constexpr std::size_t kMostShown = 20;
  if (leaf.path.ids.size() > kMostShown) leaf.path.ids.resize(kMostShown);
  append_document(out, id, leaf, body, {}, {.revs = true});
}

}  // namespace

const Leaf* replaced_by_replication(const RevTree& tree, const RevisionPath& path) {
  for (std::size_t i = 1; i < path.ids.size(); ++i) {
    const Revision revision{path.generation - static_cast<std::uint32_t>(i), path.ids[i]};
    const auto leaf = std::ranges::find(tree, revision, &Leaf::revision);
    if (leaf != tree.end()) return &*leaf;
  }
  return nullptr;
}

std::string read_validators(kv::Transaction& tx, const Database& database) {
  return read_config(tx, database, kValidators).value_or("");
}

std::vector<Validator> parse_validators(std::string_view list) {
  std::vector<Validator> validators;
  if (list.empty()) return validators;
  const bool is_object = json::for_each_member(list, [&](std::string_view id, std::string_view rev) {
    const auto text = json::string_value(rev);
    if (!text) throw damaged(list);
    try {
      validators.push_back({json::unescape(id), parse_revision(*text)});
    } catch (const Error&) { throw damaged(list); }
    return true;
  });
  if (!is_object) throw damaged(list);
  return validators;
}

std::string format_validators(std::span<const Validator> validators) {
  if (validators.empty()) return {};
  std::string list;
  json::Writer writer(list);
  writer.begin_object();
  for (const auto& [id, revision] : validators) writer.key(id).string(revision.to_string());
  writer.end_object();
  return list;
}

bool has_validation(std::string_view body) {
  const auto function = json::find(json::members_of(body), "validate_doc_update");
  return function && function->starts_with('"');
}

void update_validators(kv::Transaction& tx, const Database& database, std::string_view id, const Leaf& winner,
                       std::string_view body) {
  const std::string before = read_validators(tx, database);
  auto validators = parse_validators(before);
  std::erase_if(validators, [&](const Validator& validator) { return validator.design_document == id; });
  if (!winner.deleted && has_validation(body)) {
    validators.push_back({std::string(id), winner.revision()});
    std::ranges::sort(validators, {}, &Validator::design_document);
  }
  const std::string list = format_validators(validators);
  if (list == before) return;
  if (list.empty()) {
    tx.clear(database.keys().config(kValidators));
    return;
  }
  if (list.size() > kv::kMaxValueBytes)
    throw Error(413, "too_large", "Too many design documents of the database have `validate_doc_update`.");
  write_config(tx, database, kValidators, list);
}

std::optional<ValidationCase> validation_case(kv::Transaction& tx, const Database& database,
                                              const IncomingDocument& document, bool new_edits) {
  if (is_design(document.id)) return std::nullopt;
  const RevTree tree = read_tree(tx, database, document.id, kv::Isolation::snapshot);
  const Leaf* replaced = nullptr;
  std::uint32_t generation = 1;
  if (new_edits) {
    const auto leaf = edited_leaf(tree, document);
    if (!leaf) return std::nullopt;
    if (*leaf != nullptr) generation = (*leaf)->path.generation + 1;
    replaced = replaced_by_edit(*leaf);
  } else {
    if (!document.revision || knows(tree, *document.revision)) return std::nullopt;
    if (document.revisions) replaced = replaced_by_replication(tree, *document.revisions);
    generation = document.revision->generation;
  }
  ValidationCase found{{}, "null", {}};
  const std::string body = replaced == nullptr ? "" : read_body(tx, database, *replaced);
  found.document = document_json(document, body, generation);
  if (replaced == nullptr) return found;
  found.acceptance.replaced = replaced->revision();
  found.replaced_document.clear();
  append_with_revisions(found.replaced_document, document.id, *replaced, body);
  return found;
}

}  // namespace divan::docs
