// Many documents in one request: _bulk_docs, _revs_diff, _missing_revs.
#include <fmt/core.h>

#include "divan/api/errors.h"
#include "divan/api/routes.h"
#include "divan/api/user_documents.h"
#include "divan/api/uuids.h"
#include "divan/base/json.h"
#include "divan/docs/local.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"

namespace divan::api {
namespace {

std::string error_json(std::string_view id, const Error& error) {
  return fmt::format(R"({{"id":{},"error":{},"reason":{}}})", json::quoted(id), json::quoted(error.name()),
                     json::quoted(error.reason()));
}

// Like error_json(), but also logs server errors (status 500 and above).
std::string error_json(const Call& call, std::string_view id, const Error& error) {
  http::log_failure(call.request(), error);
  return error_json(id, error);
}

// The body of `_bulk_docs`.
struct BulkDocuments {
  std::vector<docs::IncomingDocument> documents;
  bool new_edits = true;
};

BulkDocuments parse_bulk(const std::string& body) {
  BulkDocuments bulk;
  bool has_docs = false;
  const bool is_object = json::for_each_member(body, [&](std::string_view name, std::string_view value) {
    if (name == "all_or_nothing" && value == "true")
      throw Error(501, "not_implemented",
                  "all_or_nothing is not supported; `_transact` writes documents together.");
    if (name == "new_edits") {
      if (value != "true" && value != "false") throw bad_request("`new_edits` parameter must be a boolean.");
      bulk.new_edits = value == "true";
    } else if (name == "docs") {
      bulk.documents.clear();
      has_docs = json::for_each_element(value, [&](std::string_view document) {
        bulk.documents.push_back(docs::parse_document(document));
        return true;
      });
      if (!has_docs) throw bad_request("`docs` parameter must be an array.");
    }
    return true;
  });
  if (!is_object) throw bad_request("Request body must be a JSON object");
  if (!has_docs) throw bad_request("POST body must include `docs` parameter.");
  return bulk;
}

// Local documents cannot be part of a bulk write; each is written in a transaction of its own.
Async<std::string> write_local_json(const Context& context, Call& call,
                                    const docs::IncomingDocument& document) {
  try {
    const auto revision = co_await call.run(context.store, [&](kv::Transaction& tx) {
      return docs::write_local(tx, context.catalog.open(tx, call.path()[0]), document);
    });
    co_return fmt::format(R"({{"ok":true,"id":{},"rev":"0-{}"}})", json::quoted(document.id), revision);
  } catch (const Error& error) {
    co_return error_json(call, document.id, error);
  } catch (const kv::Error& error) { co_return error_json(call, document.id, http_error(error)); }
}

bool is_local(const docs::IncomingDocument& document) { return document.id.starts_with(docs::kLocalPrefix); }

// The result of a document that is not written with the others; nullopt for all others.
Async<std::optional<std::string>> write_separately(const Context& context, Call& call,
                                                   docs::IncomingDocument& document) {
  if (is_local(document)) co_return co_await write_local_json(context, call, document);
  try {
    prepare_document(context, call.user(), call.path()[0], document);
    co_return std::nullopt;
  } catch (const Error& error) { co_return error_json(call, document.id, error); }
}

Async<std::string> edit_all(const Context& context, Call& call,
                            std::vector<docs::IncomingDocument>& documents) {
  std::vector<std::optional<std::string>> settled(documents.size());
  std::vector<docs::IncomingDocument> others;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    settled[i] = co_await write_separately(context, call, documents[i]);
    if (settled[i]) continue;
    if (documents[i].id.empty()) documents[i].id = context.uuids.next();
    others.push_back(std::move(documents[i]));
  }
  const auto results = co_await bulk_edit(context, call, others);
  std::string out = "[";
  auto result = results.begin();
  for (const auto& settled_json : settled) {
    if (out.size() > 1) out += ",\n";
    if (settled_json) {
      out += *settled_json;
      continue;
    }
    if (result->error) {
      out += error_json(call, result->id, *result->error);
    } else {
      out += R"({"ok":true,"id":)";
      json::append_string(out, result->id);
      out += ",\"rev\":";
      json::append_string(out, result->revision.to_string());
      out += '}';
    }
    ++result;
  }
  co_return out + "]";
}

// The result of a replicated document that was rejected. PouchDB's replicator continues with the others only
// if the error's `name`, which CouchDB does not send, is that of a permanent rejection, `forbidden` or
// `unauthorized`; otherwise it stops, or retries the same batch forever.
std::string refusal_json(const docs::WriteResult& refused) {
  const std::string& error = refused.error->name();
  return fmt::format(R"({{"id":{},"rev":{},"error":{},"name":"{}","reason":{}}})", json::quoted(refused.id),
                     json::quoted(refused.revision.to_string()), json::quoted(error),
                     error == "unauthorized" ? error : "forbidden", json::quoted(refused.error->reason()));
}

// The response lists only the rejected documents.
Async<std::string> replicate_all(const Context& context, Call& call,
                                 std::vector<docs::IncomingDocument>& documents) {
  std::vector<docs::WriteResult> refused;
  std::erase_if(documents, [&](docs::IncomingDocument& document) {
    try {
      prepare_document(context, call.user(), call.path()[0], document);
      return false;
    } catch (const Error& error) {
      const auto revision =
          document.revisions ? document.revisions->revision() : document.revision.value_or(docs::Revision());
      refused.push_back({document.id, revision, error});
      return true;
    }
  });
  auto more = co_await bulk_replicate(context, call, documents);
  std::move(more.begin(), more.end(), std::back_inserter(refused));
  std::string out = "[";
  for (const auto& result : refused) {
    if (out.size() > 1) out += ",\n";
    out += refusal_json(result);
  }
  co_return out + "]";
}

// Maximum number of documents whose revisions are compared in one transaction, which has a time limit.
constexpr std::size_t kComparedTogether = 1'000;

struct RevisionList {
  std::string id;
  std::vector<docs::Revision> revisions;
};

// {"id": ["rev", ...], ...}
std::vector<RevisionList> parse_revision_lists(const std::string& body) {
  std::vector<RevisionList> lists;
  const bool is_object = json::for_each_member(body, [&](std::string_view raw_id, std::string_view list) {
    lists.push_back({json::unescape(raw_id), {}});
    const bool is_array = json::for_each_element(list, [&](std::string_view rev) {
      lists.back().revisions.push_back(docs::parse_revision(json::string_value(rev).value_or("")));
      return true;
    });
    if (!is_array) throw bad_request("The revisions of a document must be an array.");
    return true;
  });
  if (!is_object) throw bad_request("Request body must be a JSON object");
  return lists;
}

// Calls `compare(list, tree, out)`, which may append a member of the response, for each document.
template <class Compare>
std::string compare_revisions(const Context& context, Call& call, Compare&& compare) {
  const auto lists = parse_revision_lists(call.json_body());
  std::string out;
  std::size_t next = 0;
  do {
    const auto page = std::span(lists).subspan(next, std::min(kComparedTogether, lists.size() - next));
    out += context.store.run([&](kv::Transaction& tx) {
      std::string members;
      const auto database = context.catalog.open(tx, call.path()[0]);
      std::vector<std::string> ids;
      for (const auto& list : page) ids.push_back(list.id);
      docs::prefetch_trees(tx, database, ids);
      for (const auto& list : page) {
        const std::size_t begin = members.size();
        if (!out.empty() || begin > 0) members += ",\n";
        const std::size_t end = members.size();
        compare(list, docs::read_tree(tx, database, list.id, kv::Isolation::snapshot), members);
        if (members.size() == end) members.resize(begin);
      }
      return members;
    });
    next += page.size();
  } while (next < lists.size());
  return out;
}

std::string revision_array(const std::vector<docs::Revision>& revisions) {
  std::string out = "[";
  for (const auto& revision : revisions) {
    if (out.size() > 1) out += ',';
    json::append_string(out, revision.to_string());
  }
  return out + "]";
}

}  // namespace

Async<RouteResult> bulk_documents(const Context& context, Call& call) {
  call.allow("POST");
  auto bulk = parse_bulk(call.json_body());
  if (bulk.new_edits) co_return json_response(201, co_await edit_all(context, call, bulk.documents));
  for (const auto& document : bulk.documents) {
    if (document.id.empty()) throw bad_request("Document id must be given with `new_edits` false.");
    if (is_local(document)) throw bad_request("Local documents cannot be replicated.");
  }
  co_return json_response(201, co_await replicate_all(context, call, bulk.documents));
}

RouteResult revisions_diff(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const auto members =
      compare_revisions(context, *call, [](const auto& list, const docs::RevTree& tree, std::string& out) {
        std::vector<docs::Revision> missing, ancestors;
        std::uint32_t newest = 0;
        for (const auto& revision : list.revisions) {
          if (docs::knows(tree, revision)) continue;
          missing.push_back(revision);
          newest = std::max(newest, revision.generation);
        }
        if (missing.empty()) return;
        for (const auto& leaf : tree) {
          if (leaf.path.generation < newest) ancestors.push_back(leaf.revision());
        }
        json::append_string(out, list.id);
        out += ":{\"missing\":" + revision_array(missing);
        if (!ancestors.empty()) out += ",\"possible_ancestors\":" + revision_array(ancestors);
        out += '}';
      });
  return json_response(200, "{" + members + "}");
}

RouteResult missing_revisions(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const auto members =
      compare_revisions(context, *call, [](const auto& list, const docs::RevTree& tree, std::string& out) {
        auto revisions = list.revisions;
        std::erase_if(revisions, [&](const auto& revision) { return docs::knows(tree, revision); });
        if (revisions.empty()) return;
        json::append_string(out, list.id);
        out += ":" + revision_array(revisions);
      });
  return json_response(200, "{\"missing_revs\":{" + members + "}}");
}

}  // namespace divan::api
