// The indexes of Mango: _index.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/mango/index_request.h"
#include "divan/mango/indexes.h"

namespace divan::api {
namespace {

// How often a design document is read again if it was changed before it could be written.
constexpr int kMaxTries = 10;

// A parameter of the list of indexes.
std::size_t list_param(const Call& call, std::string_view name, std::int64_t least, std::size_t fallback) {
  const auto text = call.param(name);
  if (!text) return fallback;
  const auto number = json::int_value(*text);
  if (!number || *number < least)
    throw Error(500, "invalid_list_index_params", "Index parameter ranges: limit > 1, skip > 0");
  return static_cast<std::size_t>(*number);
}

RouteResult list_indexes(const Context& context, const Call& call) {
  std::vector<mango::Index> indexes;
  context.store.run([&](kv::Transaction& tx) {
    indexes = mango::indexes_of(tx, context.catalog.open(tx, call.path()[0]), context.kinds);
  });
  const std::size_t limit = list_param(call, "limit", 1, indexes.size());
  const std::size_t skip = std::min(list_param(call, "skip", 0, 0), indexes.size());
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("total_rows").number(static_cast<std::int64_t>(indexes.size()));
  writer.key("indexes").begin_array();
  for (std::size_t i = skip; i < indexes.size() && i - skip < limit; ++i) indexes[i].write(writer);
  writer.end_array().end_object();
  return json_response(200, std::move(out));
}

// A design document as it is stored.
struct StoredDesign {
  std::optional<docs::Revision> revision;
  std::string body = "{}";
};

Async<StoredDesign> read_design(const Context& context, Call& call, const std::string& id) {
  StoredDesign stored;
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, call.path()[0]);
    stored = {};
    const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
    if (tree.empty() || tree.front().deleted) return;
    stored.revision = tree.front().revision();
    stored.body = docs::read_body(tx, database, tree.front());
  });
  co_return stored;
}

// Returns false if the design document was changed since it was read. Throws the error of a document that is
// refused. Body {}: deletes it.
Async<bool> write_design(const Context& context, Call& call, const std::string& id,
                         const StoredDesign& stored, std::string body) {
  std::vector<docs::IncomingDocument> documents(1);
  documents[0].id = id;
  documents[0].revision = stored.revision;
  documents[0].deleted = body == "{}";
  documents[0].body = std::move(body);
  const auto results = co_await bulk_edit(context, call, documents);
  const auto& error = results.front().error;
  if (error && error->status() != 409) throw Error(*error);
  co_return !error;
}

[[noreturn]] void throw_conflict() {
  throw Error(409, "conflict", "Encountered a conflict while saving the design document.");
}

Async<RouteResult> create_index(const Context& context, Call& call) {
  const auto request = mango::IndexRequest::parse(call.json_body());
  if (auto error = docs::document_id_error(request.design_document)) throw Error(*error);
  if (request.is_partitioned == true) {
    const bool is_possible = co_await call.run(context.store, [&](kv::Transaction& tx) {
      return context.catalog.open(tx, call.path()[0]).is_partitioned();
    });
    if (!is_possible) throw bad_request("partitioned option cannot be true in a non-partitioned database.");
  }
  std::string_view result;
  for (int tries = 0; result.empty(); ++tries) {
    if (tries == kMaxTries) throw_conflict();
    const auto stored = co_await read_design(context, call, request.design_document);
    auto body = request.add_to(stored.body);
    if (!body) {
      result = "exists";
    } else if (co_await write_design(context, call, request.design_document, stored, *std::move(body))) {
      result = "created";
    }
  }
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("result").string(result);
  writer.key("id").string(request.design_document).key("name").string(request.name).end_object();
  co_return json_response(200, std::move(out));
}

// Deletes an index of a type, or all of a design document if `name` is empty. Returns false if there is none.
Async<bool> delete_indexes(const Context& context, Call& call, const std::string& id, mango::IndexType type,
                           const std::string& name) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const auto stored = co_await read_design(context, call, id);
    auto body =
        index::views::is_query(stored.body) ? mango::without_index(stored.body, type, name) : std::nullopt;
    if (!body) co_return false;
    if (co_await write_design(context, call, id, stored, *std::move(body))) co_return true;
  }
  throw_conflict();
}

Async<RouteResult> delete_several(const Context& context, Call& call) {
  const auto designs = mango::parse_bulk_delete(call.json_body());
  std::vector<std::string> deleted, missing;
  for (const auto& id : designs) {
    const bool existed = co_await delete_indexes(context, call, id, {}, "");
    (existed ? deleted : missing).push_back(id);
  }
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("success").begin_array();
  for (const auto& id : deleted)
    writer.begin_object().key("id").string(id).key("ok").boolean(true).end_object();
  writer.end_array().key("fail").begin_array();
  for (const auto& id : missing)
    writer.begin_object().key("id").string(id).key("error").string("not_found").end_object();
  writer.end_array().end_object();
  co_return json_response(200, std::move(out));
}

// /{db}/_index/{design document}/{type}/{name}
Async<RouteResult> delete_index(const Context& context, Call& call) {
  auto path = call.path();
  if (path.size() == 6 && path[2] == "_design") path.erase(path.begin() + 2);
  if (path.size() != 5) throw not_found("missing");
  call.allow("DELETE");
  std::string id = docs::is_design(path[2]) ? path[2] : std::string(docs::kDesignPrefix) + path[2];
  const auto type = mango::index_type(path[3]);
  const bool existed = type && co_await delete_indexes(context, call, id, *type, path[4]);
  if (!existed) throw not_found("missing");
  co_return ok_response();
}

}  // namespace

Async<RouteResult> indexes(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 3 && path[2] == "_bulk_delete") {
    call->allow("POST");
    return delete_several(context, *call);
  }
  if (path.size() > 2) return delete_index(context, *call);
  call->allow("GET,POST");
  if (call->method() == "POST") return create_index(context, *call);
  return returned(list_indexes(context, *call));
}

}  // namespace divan::api
