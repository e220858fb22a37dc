// Single documents.
#include <fmt/core.h>

#include "divan/api/attachment_receiver.h"
#include "divan/api/database_access.h"
#include "divan/api/document_bodies.h"
#include "divan/api/routes.h"
#include "divan/api/unsupported.h"
#include "divan/api/user_documents.h"
#include "divan/api/uuids.h"
#include "divan/api/validations.h"
#include "divan/base/json.h"
#include "divan/docs/local.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/http/etag.h"
#include "divan/http/multipart.h"

namespace divan::api {
namespace {

// Bytes of a response to `open_revs`.
constexpr std::size_t kMaxOpenRevisions = 64 << 20;

docs::DocumentOptions document_options(const Call& call) {
  docs::DocumentOptions options;
  const bool meta = call.flag("meta");
  options.revs = call.flag("revs");
  options.revs_info = meta || call.flag("revs_info");
  options.conflicts = meta || call.flag("conflicts");
  options.deleted_conflicts = meta || call.flag("deleted_conflicts");
  options.local_seq = call.flag("local_seq");
  return options;
}

std::string etag(std::string_view revision) { return "\"" + std::string(revision) + "\""; }

std::string unquoted(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

std::string result_json(const docs::WriteResult& result) {
  return fmt::format(R"({{"ok":true,"id":{},"rev":{}}})", json::quoted(result.id),
                     json::quoted(result.revision.to_string()));
}

http::Headers location_of(const Call& call, const std::string& id) {
  const auto path = fmt::format("/{}/{}", http::percent_encode(call.path()[0]), http::percent_encode(id));
  return {{"Location", absolute_uri(call, path)}};
}

Async<http::Response> put_document(const Context& context, Call& call, const std::string& id) {
  auto document = co_await document_of(context, call, id);
  if (call.flag("new_edits", true)) {
    document.revision = named_revision(call, document.revision);
    const int status = document.deleted ? 200 : 201;
    auto headers = location_of(call, id);
    co_return co_await write_document(context, call, std::move(document), status, std::move(headers));
  }
  document.revision = named_revision(call, document.revision);
  prepare_document(context, call.user(), call.path()[0], document);
  docs::WriteResult result;
  result.id = id;
  if (document.revision) result.revision = *document.revision;
  const int status = document.deleted ? 200 : 201;
  std::vector<docs::IncomingDocument> documents;
  documents.push_back(std::move(document));  // an initializer list would copy it
  const auto refused = co_await bulk_replicate(context, call, documents);
  if (!refused.empty()) throw Error(*refused.front().error);
  auto headers = location_of(call, id);
  headers.push_back({"ETag", etag(result.revision.to_string())});
  co_return json_response(status, result_json(result), std::move(headers));
}

Async<http::Response> delete_document(const Context& context, Call& call, const std::string& id) {
  docs::IncomingDocument tombstone;
  tombstone.id = id;
  tombstone.deleted = true;
  tombstone.body = "{}";
  tombstone.revision = named_revision(call, std::nullopt);
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    docs::prefetch_document(tx, context.catalog, call.path()[0], id);
    const auto tree = docs::read_tree(tx, context.catalog.open(tx, call.path()[0]), id);
    if (tree.empty()) throw not_found("missing");
    if (tree.front().deleted) throw not_found("deleted");
  });
  if (!tombstone.revision) throw conflict();
  co_return co_await write_document(context, call, std::move(tombstone), 200);
}

std::vector<docs::Revision> parse_revisions(const std::string& parameter, const char* expected) {
  std::vector<docs::Revision> revisions;
  const bool is_array = json::for_each_element(json::compact(parameter), [&](std::string_view rev) {
    revisions.push_back(docs::parse_revision(json::string_value(rev).value_or("")));
    return true;
  });
  if (!is_array) throw bad_request(expected);
  return revisions;
}

// The revisions that `open_revs` names; nullopt: all leaves.
std::optional<std::vector<docs::Revision>> parse_open_revisions(const std::string& wanted) {
  if (wanted == "all") return std::nullopt;
  return parse_revisions(wanted, "`open_revs` must be `all` or an array of revisions.");
}

// Which attachments a response has: those of revisions after the ones that the client has.
struct WantedAttachments {
  explicit WantedAttachments(const Call& call)
      : all(call.flag("attachments")), encodings(call.flag("att_encoding_info")) {
    const auto since = call.param("atts_since");
    if (!since) return;
    all = true;
    known = parse_revisions(*since, "`atts_since` must be an array of revisions.");
  }

  // The body of a document in JSON; the client has the attachments of revisions up to generation
  // `known_generation`.
  std::string shown(kv::Transaction& tx, const docs::Database& database, const std::string& body,
                    std::uint32_t known_generation, ContentPlaceholders& placeholders) const {
    if (all) return with_data_or_placeholders(tx, database, body, known_generation, placeholders);
    return docs::with_attachment_form(tx, database, body, docs::attachment_form(false, encodings));
  }

  bool all;
  bool encodings;
  std::vector<docs::Revision> known{};
};

docs::RevisionSelection select_revisions(const docs::RevTree& tree,
                                         const std::optional<std::vector<docs::Revision>>& revisions,
                                         bool latest) {
  if (revisions) return docs::find_revisions(tree, *revisions, latest);
  if (tree.empty()) throw not_found("missing");
  docs::RevisionSelection all;
  for (const auto& leaf : tree) all.found.push_back(&leaf);
  return all;
}

std::string missing_json(const docs::Revision& revision) {
  return fmt::format(R"({{"missing":{}}})", json::quoted(revision.to_string()));
}

// Throws too_large (413) if a response with all revisions that were asked for would take too much memory.
void check_open_revisions(const std::string& out) {
  if (out.size() > kMaxOpenRevisions)
    throw Error(
        413, "too_large",
        fmt::format("The revisions have more than {} bytes. Read them one by one.", kMaxOpenRevisions));
}

// The requested revisions, each with its attachments.
void append_mixed(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                  const docs::RevisionSelection& selection, const docs::RevTree& tree,
                  const docs::DocumentOptions& options, const WantedAttachments& attachments,
                  const std::string& boundary, const std::string& inner, ContentPlaceholders& placeholders,
                  std::string& out) {
  http::MultipartWriter writer(out, boundary);
  for (const docs::Leaf* leaf : selection.found) {
    const auto append = [&](std::string& json, std::string_view body) {
      docs::append_document(json, id, *leaf, body, tree, options);
    };
    std::string part;
    const std::string body = docs::read_body(tx, database, *leaf);
    const auto known = docs::latest_known_generation(leaf->path, attachments.known);
    writer.begin_part(append_with_attachments(tx, database, body, append, known, inner, placeholders, part));
    out += part;
    check_open_revisions(out);
  }
  for (const auto& revision : selection.missing) {
    writer.begin_part(kErrorPart);
    out += missing_json(revision);
  }
  writer.end();
}

void append_array(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                  const docs::RevisionSelection& selection, const docs::RevTree& tree,
                  const docs::DocumentOptions& options, const WantedAttachments& attachments,
                  ContentPlaceholders& placeholders, std::string& out) {
  out += '[';
  for (const docs::Leaf* leaf : selection.found) {
    out += out.size() > 1 ? ",\n{\"ok\":" : "{\"ok\":";
    const std::string body = docs::read_body(tx, database, *leaf);
    const auto known = docs::latest_known_generation(leaf->path, attachments.known);
    docs::append_document(out, id, *leaf, attachments.shown(tx, database, body, known, placeholders), tree,
                          options);
    out += '}';
    check_open_revisions(out);
  }
  for (const auto& revision : selection.missing)
    out += (out.size() > 1 ? ",\n" : "") + missing_json(revision);
  out += ']';
}

// Sends a response, in which contents replace the placeholders.
Async<RouteResult> send(const Context& context, Call& call, const ContentPlaceholders& placeholders,
                        http::Response head, std::string text) {
  head.body.clear();
  if (!placeholders.any()) {
    head.body = std::move(text);
    co_return head;
  }
  if (call.exchange()->request().method() == "HEAD") {
    call.exchange()->start(std::move(head));
    call.exchange()->end();
    co_return std::nullopt;
  }
  auto pages = placeholders.pages(context, std::move(text));
  co_await call.executor().allow_blocking();
  co_return co_await stream_pages(context, call, std::move(pages), std::move(head));
}

// open_revs: the requested revisions, as an array or as multipart/mixed.
Async<RouteResult> open_revisions(const Context& context, Call& call, const std::string& id,
                                  const std::string& wanted) {
  const auto revisions = parse_open_revisions(wanted);
  const auto options = document_options(call);
  const bool latest = call.flag("latest");
  const WantedAttachments attachments(call);
  const std::string boundary = accepts(call, "multipart/mixed") ? context.rng.uuid() : "";
  // Not one that begins with the other: parsers take a line that begins with a boundary for a delimiter.
  const std::string inner = boundary.empty() ? "" : context.rng.uuid();
  std::string out;
  ContentPlaceholders placeholders(context.rng);
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    out.clear();
    placeholders.clear();
    docs::prefetch_document(tx, context.catalog, call.path()[0], id);
    const auto database = context.catalog.open(tx, call.path()[0]);
    const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
    const auto selection = select_revisions(tree, revisions, latest);
    if (boundary.empty()) {
      append_array(tx, database, id, selection, tree, options, attachments, placeholders, out);
    } else {
      append_mixed(tx, database, id, selection, tree, options, attachments, boundary, inner, placeholders,
                   out);
    }
  });
  http::Response head = json_response(200, "");
  if (boundary.empty()) {
    out += '\n';
  } else {
    head = {200, {{"Content-Type", fmt::format("multipart/mixed; boundary=\"{}\"", boundary)}}};
  }
  co_return co_await send(context, call, placeholders, std::move(head), std::move(out));
}

Async<RouteResult> get_document(const Context& context, Call& call, const std::string& id) {
  if (const auto wanted = call.param("open_revs"))
    co_return co_await open_revisions(context, call, id, *wanted);
  const auto options = document_options(call);
  const auto rev = call.param("rev");
  const auto revision = rev ? std::optional(docs::parse_revision(*rev)) : std::nullopt;
  const bool latest = call.flag("latest");
  const bool deleted = call.flag("deleted");
  const WantedAttachments attachments(call);
  const std::string boundary =
      attachments.all && accepts(call, "multipart/related") ? context.rng.uuid() : "";
  std::string out, tag, type;
  ContentPlaceholders placeholders(context.rng);
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    out.clear();
    placeholders.clear();
    docs::prefetch_document(tx, context.catalog, call.path()[0], id);
    const auto database = context.catalog.open(tx, call.path()[0]);
    const auto found = docs::find_document(tx, database, id, revision, latest, deleted);
    tag = etag(found.revision().revision().to_string());
    const auto append = [&](std::string& json, std::string_view body) {
      docs::append_document(json, id, found.revision(), body, found.tree, options);
    };
    const auto known = docs::latest_known_generation(found.revision().path, attachments.known);
    if (!boundary.empty()) {
      type = append_with_attachments(tx, database, found.body, append, known, boundary, placeholders, out);
    } else {
      append(out, attachments.shown(tx, database, found.body, known, placeholders));
    }
  });
  const bool plain = !attachments.all && !attachments.encodings && !options.revs && !options.revs_info &&
                     !options.conflicts && !options.deleted_conflicts;
  if (plain) {
    if (auto unchanged = not_modified(call, tag)) co_return *std::move(unchanged);
  }
  http::Headers headers;
  if (plain) headers.push_back({"ETag", tag});
  http::Response head;
  if (boundary.empty()) {
    out += '\n';
    head = json_response(200, "", std::move(headers));
  } else {
    headers.push_back({"Content-Type", type});
    headers.push_back({"Cache-Control", "must-revalidate"});
    head.headers = std::move(headers);
  }
  co_return co_await send(context, call, placeholders, std::move(head), std::move(out));
}

// The id is invalid: PUT is rejected, and other methods find no document.
Async<http::Response> reject_id(const Context& context, Call& call, const Error& error) {
  co_await call.run(context.store, [&](kv::Transaction& tx) { context.catalog.open(tx, call.path()[0]); });
  if (call.method() == "PUT") throw Error(error);
  throw not_found("missing");
}

docs::Revision local_revision(const docs::LocalDocument& document) {
  return {0, std::to_string(document.revision)};
}

// GET of a local document. It has one revision, 0-N, and no tree: members about other leaves are empty.
Async<http::Response> get_local(const Context& context, Call& call, const std::string& id) {
  if (call.param("open_revs"))
    throw bad_request("`open_revs` is not supported for local documents, which have only one revision.");
  const auto wanted = call.param("rev");
  const auto found = co_await call.run(context.store, [&](kv::Transaction& tx) {
    return docs::read_local(tx, context.catalog.open(tx, call.path()[0]), id);
  });
  if (!found) throw not_found();
  const auto revision = local_revision(*found);
  if (wanted && docs::parse_revision(*wanted) != revision) throw not_found();
  std::string out;
  docs::append_open_document(out, id, revision, false, found->body);
  if (call.flag("revs")) {
    out += ",\"_revisions\":";
    docs::append_revisions(out, {revision.generation, {revision.id}});
  }
  out += '}';
  // A recreated document begins with 0-1 again.
  const std::string tag = http::etag_of(out);
  if (auto unchanged = not_modified(call, tag)) co_return *std::move(unchanged);
  http::Headers headers{{"ETag", tag}};
  co_return json_response(200, std::move(out), std::move(headers));
}

http::Response local_result(const std::string& id, std::int64_t revision, int status) {
  return json_response(status,
                       fmt::format(R"({{"ok":true,"id":{},"rev":"0-{}"}})", json::quoted(id), revision));
}

// The document that a COPY writes, without its body: its id and, if it is to be replaced, its revision.
docs::IncomingDocument destination_of(const Call& call) {
  const auto field = call.header("Destination");
  if (!field) throw bad_request("Destination header is mandatory for COPY.");
  if (field->starts_with("http://") || field->starts_with("https://"))
    throw bad_request("Destination URL must be relative.");
  const auto mark = std::min(field->find('?'), field->size());
  docs::IncomingDocument document;
  document.id = http::percent_decode(field->substr(0, mark));
  docs::check_document_id(document.id);
  if (mark < field->size()) {
    const auto parameters = http::parse_query(field->substr(mark + 1));
    if (parameters.size() != 1 || parameters.front().name != "rev")
      throw bad_request("`Destination` may have one parameter, `rev`.");
    document.revision = docs::parse_revision(parameters.front().value);
  }
  return document;
}

// https://docs.couchdb.org/en/stable/api/document/common.html#copying-a-document. Source and destination may
// be local documents.
Async<http::Response> copy_document(const Context& context, Call& call, const std::string& source) {
  const std::string& name = call.path()[0];
  auto document = destination_of(call);
  const auto revision = named_revision(call, std::nullopt);
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, name);
    if (source.starts_with(docs::kLocalPrefix)) {
      auto found = docs::read_local(tx, database, source);
      if (!found || (revision && *revision != local_revision(*found))) throw not_found();
      document.body = std::move(found->body);
    } else {
      auto found = docs::find_document(tx, database, source, revision);
      document.deleted = found.revision().deleted;
      document.body = docs::without_attachments(found.body);
      document.attachments.clear();
      for (const auto& attachment : docs::attachments_of(found.body))
        document.attachments.push_back(docs::IncomingAttachment::of(attachment));
    }
  });
  if (document.id.starts_with(docs::kLocalPrefix)) {
    const auto local = co_await call.run(context.store, [&](kv::Transaction& tx) {
      return docs::write_local(tx, context.catalog.open(tx, name), document);
    });
    co_return local_result(document.id, local, 201);
  }
  auto location = location_of(call, document.id);
  co_return co_await write_document(context, call, std::move(document), 201, std::move(location));
}

}  // namespace

std::optional<docs::Revision> named_revision(const Call& call,
                                             const std::optional<docs::Revision>& in_document) {
  std::optional<docs::Revision> named = in_document;
  const auto take = [&](std::string_view text, const char* otherwise) {
    auto revision = docs::parse_revision(text);
    if (named && *named != revision) throw bad_request(otherwise);
    named = std::move(revision);
  };
  if (const auto rev = call.param("rev"))
    take(*rev, "Document rev from request body and query string have different values");
  if (const auto match = call.header("If-Match"))
    take(unquoted(*match), "Document rev and etag have different values");
  return named;
}

void check_before_upload(const Context& context, const Call& call, docs::IncomingDocument document) {
  prepare_document(context, call.user(), call.path()[0], document);
  if (const auto rules = write_rules(context, call); rules.check) rules.check(document);
}

Async<http::Response> write_document(const Context& context, Call& call, docs::IncomingDocument document,
                                     int status, http::Headers headers) {
  prepare_document(context, call.user(), call.path()[0], document);
  std::vector<docs::IncomingDocument> documents;
  documents.push_back(std::move(document));  // an initializer list would copy it
  const auto results = co_await bulk_edit(context, call, documents);
  const auto& result = results.front();
  if (result.error) throw Error(*result.error);
  const std::string rev = result.revision.to_string();
  // Writes are always complete before the response; a client that asked not to wait gets the status that it
  // expects.
  if (call.param("batch") == "ok") status = 202;
  headers.push_back({"ETag", etag(rev)});
  co_return json_response(status, result_json(result), std::move(headers));
}

Async<std::vector<docs::WriteResult>> bulk_edit(const Context& context, Call& call,
                                                std::vector<docs::IncomingDocument>& documents) {
  const std::string& name = call.path()[0];
  co_await prepare_attachments(context, call, documents);
  if (docs::has_design_documents(documents)) {
    // Functions are compiled, unless the database does not exist.
    co_await call.executor().allow_blocking();
    co_await call.run(context.store, [&](kv::Transaction& tx) { context.catalog.open(tx, name); });
  }
  docs::BulkEdit edit(context.catalog, name, documents, context.rng, checkpoint_of(call),
                      write_rules(context, call));
  co_await write_all(context, call, edit, true);
  co_return edit.take_results();
}

Async<std::vector<docs::WriteResult>> bulk_replicate(const Context& context, Call& call,
                                                     std::vector<docs::IncomingDocument>& documents) {
  co_await prepare_attachments(context, call, documents);
  docs::BulkReplicate replicate(context.catalog, call.path()[0], std::move(documents),
                                write_rules(context, call));
  co_await write_all(context, call, replicate, false);
  co_return replicate.take_refused();
}

Async<RouteResult> create_document(const Context& context, Call& call) {
  auto document = docs::parse_document(call.json_body());
  if (document.id.empty()) document.id = context.uuids.next();
  // Before a password is hashed.
  if (const auto rules = write_rules(context, call); rules.check) rules.check(document);
  if (document.id.starts_with(docs::kLocalPrefix)) {
    const auto revision = co_await call.run(context.store, [&](kv::Transaction& tx) {
      return docs::write_local(tx, context.catalog.open(tx, call.path()[0]), document);
    });
    co_return local_result(document.id, revision, 201);
  }
  auto location = location_of(call, document.id);
  co_return co_await write_document(context, call, std::move(document), 201, std::move(location));
}

Async<RouteResult> document(const Context& context, Call& call, std::string id) {
  call.allow("GET,PUT,DELETE,COPY");
  if (const auto error = docs::document_id_error(id)) co_return co_await reject_id(context, call, *error);
  if (call.method() == "COPY") co_return co_await copy_document(context, call, id);
  if (call.method() == "PUT") co_return co_await put_document(context, call, id);
  if (call.method() == "DELETE") co_return co_await delete_document(context, call, id);
  co_return co_await get_document(context, call, id);
}

Async<RouteResult> local_document(const Context& context, Call& call, std::string id) {
  call.allow("GET,PUT,DELETE,COPY");
  if (const auto error = docs::document_id_error(id)) co_return co_await reject_id(context, call, *error);
  if (call.method() == "COPY") co_return co_await copy_document(context, call, id);
  const std::string& name = call.path()[0];
  if (call.method() == "GET") co_return co_await get_local(context, call, id);
  docs::IncomingDocument document;
  if (call.method() == "PUT") {
    document = docs::parse_document(call.json_body());
  } else {
    document.deleted = true;
  }
  document.id = id;
  document.revision = named_revision(call, document.revision);
  const auto revision = co_await call.run(context.store, [&](kv::Transaction& tx) {
    return docs::write_local(tx, context.catalog.open(tx, name), document);
  });
  co_return local_result(id, revision, call.method() == "PUT" ? 201 : 200);
}

}  // namespace divan::api
