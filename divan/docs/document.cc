#include "divan/docs/document.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_duplicates.h"
#include "divan/docs/sequence.h"

namespace divan::docs {
namespace {

Error illegal_id(std::string reason) { return {400, "illegal_docid", std::move(reason)}; }
Error invalid(std::string reason) { return {400, "doc_validation", std::move(reason)}; }

std::string string_member(std::string_view value, Error error) {
  auto text = json::string_value(value);
  if (!text) throw error;
  return *std::move(text);
}

// Members that a client can request and may send back; they are not part of the document.
bool is_derived(std::string_view name) {
  return name == "_conflicts" || name == "_deleted_conflicts" || name == "_revs_info" || name == "_local_seq";
}

// Members that CouchDB's replicator writes into its documents: not metadata, but stored.
bool is_replication_state(std::string_view name) {
  return name == "_replication_state" || name == "_replication_state_time" ||
         name == "_replication_state_reason" || name == "_replication_id" || name == "_replication_stats";
}

void parse_special_member(IncomingDocument& document, std::string_view name, std::string_view value) {
  if (name == "_id") {
    document.id = string_member(value, illegal_id("Document id must be a string"));
    check_document_id(document.id);
  } else if (name == "_rev") {
    document.revision = parse_revision(string_member(value, bad_request("Invalid rev format")));
  } else if (name == "_deleted") {
    if (value != "true" && value != "false") throw invalid("`_deleted` must be true or false.");
    document.deleted = value == "true";
  } else if (name == "_revisions") {
    document.revisions = parse_revisions(value);
  } else if (name == "_attachments") {
    document.attachments = parse_attachments(value);
  } else if (!is_derived(name)) {
    throw invalid(fmt::format("Bad special document member: {}", name));
  }
}

void append_revision_list(std::string& out, std::string_view name, const RevTree& tree, const Leaf& shown,
                          bool deleted) {
  bool first = true;
  for (const Leaf& leaf : tree) {
    if (leaf.deleted != deleted || leaf.path.contains(shown.revision())) continue;
    out += first ? ',' + json::quoted(name) + ":[" : ",";
    first = false;
    json::append_string(out, leaf.revision().to_string());
  }
  if (!first) out += ']';
}

void append_revs_info(std::string& out, const Leaf& leaf) {
  out += ",\"_revs_info\":[";
  for (std::size_t i = 0; i < leaf.path.ids.size(); ++i) {
    const Revision revision{static_cast<std::uint32_t>(leaf.path.generation - i), leaf.path.ids[i]};
    const auto old = std::ranges::find(leaf.old, i, &OldRevision::index);
    const bool is_stored = i == 0 || old != leaf.old.end();
    const bool is_deleted = i == 0 ? leaf.deleted : is_stored && old->deleted;
    const char* status = !is_stored ? "missing" : is_deleted ? "deleted" : "available";
    out += fmt::format(R"({}{{"rev":{},"status":"{}"}})", i == 0 ? "" : ",",
                       json::quoted(revision.to_string()), status);
  }
  out += ']';
}

}  // namespace

std::string too_large_reason(std::string_view id) {
  return fmt::format("Document {} has more than {} bytes with its attachments.", id, kMaxDocumentBytes);
}

Error attachment_too_large(std::string_view name) {
  return {413, "attachment_too_large",
          fmt::format("Attachment {} is larger than [couchdb] max_attachment_size.", name)};
}

std::optional<Error> document_id_error(std::string_view id) {
  if (id.empty()) return illegal_id("Document id must not be empty");
  if (!is_utf8(id)) return illegal_id("Document id must be UTF-8");
  // A zero byte takes two bytes in a key.
  const auto zeros = static_cast<std::size_t>(std::count(id.begin(), id.end(), '\0'));
  if (id.size() + zeros > kMaxDocumentIdBytes) return illegal_id("Document id is too long");
  if (id.front() != '_') return std::nullopt;
  for (const auto prefix : {kDesignPrefix, kLocalPrefix}) {
    if (id == prefix) return illegal_id("Illegal document id `" + std::string(id) + "`");
    if (id.starts_with(prefix)) return std::nullopt;
  }
  return illegal_id("Only reserved document ids may start with underscore.");
}

void check_document_id(std::string_view id) {
  if (auto error = document_id_error(id)) throw *std::move(error);
}

RevisionPath parse_revisions(std::string_view json) {
  if (!json.starts_with('{')) throw invalid("_revisions isn't an object.");
  const auto start = json::int_value(json::member(json, "start").value_or(""));
  if (!start || *start < 0 || *start > kMaxGeneration) throw invalid("_revisions.start isn't an integer.");
  RevisionPath path;
  path.generation = static_cast<std::uint32_t>(*start);
  const bool is_array =
      json::for_each_element(json::member(json, "ids").value_or(""), [&](std::string_view id) {
        path.ids.push_back(Revision::parse_id(string_member(id, invalid("RevId isn't a string"))));
        if (path.ids.back().size() > kMaxRevisionIdBytes) throw invalid("RevId is too long");
        return path.ids.size() <= kMaxGivenRevisions;
      });
  if (!is_array) throw invalid("_revisions.ids isn't a array.");
  if (path.ids.empty() || path.ids.size() > kMaxGivenRevisions)
    throw invalid("_revisions.ids has a bad length.");
  // Local documents have one revision, whose generation is 0.
  if (path.ids.size() > std::max<std::uint32_t>(path.generation, 1)) {
    throw invalid("_revisions.ids is longer than _revisions.start allows.");
  }
  return path;
}

IncomingDocument parse_document(std::string_view given) {
  IncomingDocument document;
  const auto unique = json::without_duplicates(given);
  const std::string_view text = unique ? std::string_view(*unique) : given;
  document.body.reserve(text.size());
  document.body += '{';
  const bool is_object = json::for_each_member(text, [&](std::string_view raw_name, std::string_view value) {
    const bool escaped = raw_name.find('\\') != std::string_view::npos;
    const std::string unescaped = escaped ? json::unescape(raw_name) : std::string();
    const std::string_view name = escaped ? std::string_view(unescaped) : raw_name;
    if (name.starts_with('_') && !is_replication_state(name)) {
      parse_special_member(document, name, value);
      return true;
    }
    if (document.body.size() > 1) document.body += ',';
    // The quotes around the name are part of the text.
    document.body.append(raw_name.data() - 1, raw_name.size() + 2).append(":").append(value);
    return true;
  });
  if (!is_object) throw bad_request("Document must be a JSON object");
  // `_revisions` takes precedence over `_rev`, as in CouchDB.
  if (document.revisions) document.revision = document.revisions->revision();
  document.body += '}';
  return document;
}

void append_revisions(std::string& out, const RevisionPath& path) {
  out += fmt::format(R"({{"start":{},"ids":[)", path.generation);
  for (std::size_t i = 0; i < path.ids.size(); ++i) {
    if (i > 0) out += ',';
    json::append_string(out, Revision::id_to_string(path.ids[i]));
  }
  out += "]}";
}

std::optional<const Leaf*> edited_leaf(const RevTree& tree, const IncomingDocument& document) {
  if (!tree.empty() && tree.front().deleted) {
    if (document.revision || document.deleted) return std::nullopt;
    return &tree.front();
  }
  if (!document.revision) return tree.empty() ? std::optional<const Leaf*>(nullptr) : std::nullopt;
  const Leaf* const leaf = find_leaf(tree, *document.revision);
  return leaf == nullptr ? std::nullopt : std::optional(leaf);
}

void append_open_document(std::string& out, std::string_view id, const Revision& revision, bool deleted,
                          std::string_view body) {
  out.reserve(out.size() + body.size() + id.size() + 64);
  out += "{\"_id\":";
  json::append_string(out, id);
  out += ",\"_rev\":";
  json::append_string(out, revision.to_string());
  if (deleted) out += ",\"_deleted\":true";
  if (body.size() > 2) {
    out += ',';
    out += body.substr(1, body.size() - 2);
  }
}

void append_conflicts(std::string& out, const RevTree& tree) {
  if (tree.empty()) return;
  append_revision_list(out, "_conflicts", tree, tree.front(), false);
  append_revision_list(out, "_deleted_conflicts", tree, tree.front(), true);
}

void append_document(std::string& out, std::string_view id, const Leaf& leaf, std::string_view body,
                     const RevTree& tree, const DocumentOptions& options) {
  append_open_document(out, id, leaf.revision(), leaf.deleted, body);
  if (options.revs) {
    out += ",\"_revisions\":";
    append_revisions(out, leaf.path);
  }
  if (options.revs_info) append_revs_info(out, leaf);
  if (options.conflicts) append_revision_list(out, "_conflicts", tree, leaf, false);
  if (options.deleted_conflicts) append_revision_list(out, "_deleted_conflicts", tree, leaf, true);
  if (options.local_seq) {
    out += ",\"_local_seq\":";
    json::append_string(out, to_sequence(leaf.sequence));
  }
  out += '}';
}

}  // namespace divan::docs
