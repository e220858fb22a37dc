#include "divan/api/routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <variant>

#include "divan/api/database_access.h"
#include "divan/api/streamed_body.h"
#include "divan/api/unsupported.h"
#include "divan/base/error.h"
#include "divan/docs/partition.h"
#include "divan/docs/reader.h"
#include "divan/http/multipart.h"

namespace divan::api {
namespace {

// A route that holds a worker thread, or that may wait without one.
using Route = std::variant<RouteResult (*)(const Context&, const CallPtr&),
                           Async<RouteResult> (*)(const Context&, const CallPtr&)>;

Async<RouteResult> begin(const Route& route, const Context& context, const CallPtr& call) {
  if (const auto* blocking = std::get_if<0>(&route)) return returned((*blocking)(context, call));
  return std::get<1>(route)(context, call);
}

enum class Access {
  admins,
  route_checks,  // the route checks name and roles
  everyone
};

struct ServerRoute {
  Route route;
  Access access = Access::admins;
  bool has_more = false;  // longer paths that begin with this one are valid
  bool may_block = true;  // it must be called on a worker thread
};

const std::map<std::string_view, ServerRoute>& server_routes() {
  static const std::map<std::string_view, ServerRoute> routes = {
      {"_up", {up, Access::everyone}},
      {"_openapi", {openapi, Access::everyone}},
      {"_session", {session, Access::everyone}},
      {"_uuids", {uuids, Access::everyone}},
      {"_all_dbs", {all_databases, Access::route_checks}},
      {"_dbs_info", {databases_info, Access::route_checks}},
      {"_active_tasks", {active_tasks}},
      {"_replicate", {replicate}},
      {"_scheduler", {scheduler, Access::admins, true}},
      {"_ken", {ken_status}},
      {"_deliver", {deliveries}},
      {"_membership", {membership}},
      {"_node", {node, Access::route_checks, true}},
      {"_reload_query_servers", {reload_query_servers}},
      {"_reshard", {reshard, Access::admins, true}},
      {"_cluster_setup", {cluster_setup}},
      {"_utils", {utils, Access::everyone, true, false}},
      {kFavicon, {favicon, Access::everyone, false, false}},
      {"_db_updates", {database_updates, Access::route_checks}},
      {"_events", {events_of_channels, Access::route_checks, true, false}},
      {"_jobs", {jobs, Access::route_checks, true, false}},
      {"_workers", {workers, Access::route_checks, true}},
      {"_transact", {transact, Access::route_checks}},
      {"_search_analyze", {search_analyze, Access::everyone}},
      {"_backup", {backup}},
      {"_restore", {restore, Access::admins, true}},
  };
  return routes;
}

const std::map<std::string_view, Route>& database_routes() {
  static const std::map<std::string_view, Route> routes = {
      {"_bulk_get", bulk_get},
      {"_all_docs", all_documents},
      {"_design_docs", all_documents},
      {"_local_docs", local_documents},
      {"_changes", changes},
      {"_find", find},
      {"_explain", explain},
      {"_index", indexes},
      {"_revs_diff", revisions_diff},
      {"_missing_revs", missing_revisions},
      {"_security", security},
      {"_revs_limit", revisions_limit},
      {"_purge", purge_documents},
      {"_purged_infos", purge_records},
      {"_purged_infos_limit", purge_records_limit},
      {"_auto_purge", auto_purge},
      {"_compact", maintenance},
      {"_view_cleanup", maintenance},
      {"_geo_cleanup", maintenance},
      {"_search_cleanup", maintenance},
      {"_ensure_full_commit", maintenance},
      {"_shards", shards},
      {"_sync_shards", sync_shards},
  };
  return routes;
}

// Throws not_found unless the database exists.
void check_database(const Context& context, const Call& call) {
  context.store.run([&](kv::Transaction& tx) { context.catalog.open(tx, call.path()[0]); });
}

[[noreturn]] void reject_local_attachment(const Context& context, const Call& call) {
  check_database(context, call);
  throw bad_request("_local documents do not accept attachments.");
}

// The attachment that a path names, whose name may have slashes.
Async<RouteResult> attachment_route(const Context& context, Call& call) {
  const auto& path = call.path();
  const bool in_design = path[1] == "_design";
  std::string id = in_design ? std::string(docs::kDesignPrefix) + path[2] : path[1];
  if (id.starts_with(docs::kLocalPrefix)) reject_local_attachment(context, call);
  if (const auto error = docs::document_id_error(id)) {
    check_database(context, call);
    call.allow("GET,PUT,DELETE");
    if (call.method() == "PUT") throw Error(*error);
    throw not_found("missing");
  }
  return attachment(context, call, std::move(id), joined_path(path, in_design ? 3 : 2));
}

// A name below a design document that begins with an underscore. CouchDB takes it for an attachment's name,
// which must not begin with one.
[[noreturn]] void reject_design_action(const Context& context, const Call& call) {
  const auto& path = call.path();
  context.store.run([&](kv::Transaction& tx) {
    docs::find_document(tx, context.catalog.open(tx, path[0]), std::string(docs::kDesignPrefix) + path[2],
                        {});
  });
  if (const auto* entry = find_unsupported(Level::design_document, path[3])) reject_unsupported(call, *entry);
  call.allow("GET,PUT,DELETE");
  if (call.method() == "PUT")
    throw bad_request(fmt::format("Attachment name '{}' starts with prohibited character '_'", path[3]));
  throw not_found("Document is missing attachment");
}

Async<RouteResult> design_route(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  const bool is_view = path[3] == "_view" && path.size() >= 5;
  if (is_view && (path.size() == 5 || (path.size() == 6 && path[5] == "queries"))) return view(context, call);
  if (path[3] == "_update" && path.size() >= 5) return update(context, call);
  if (path[3] == "_show") return show(context, call);
  if (path[3] == "_list") return list(context, call);
  if (path[3] == "_rewrite") return rewrite(context, call);
  if (path[3] == "_info" && path.size() == 4) return returned(design_info(context, call));
  if (path[3] == "_search" && path.size() == 5) return search(context, call);
  if (path[3] == "_search_info" && path.size() == 5) return returned(search_info(context, call));
  if (path[3] == "_search_disk_size" && path.size() == 5) return returned(search_disk_size(context, call));
  if (path[3] == "_geo" && path.size() == 5) return geo(context, call);
  if (path[3] == "_geo_info" && path.size() == 5) return returned(geo_info(context, call));
  if (path[3] == "_trigger" && path.size() == 5) return returned(trigger_info(context, call));
  if (!path[3].starts_with('_')) return attachment_route(context, *call);
  reject_design_action(context, *call);
}

[[noreturn]] void reject_local_route(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() > 2) reject_local_attachment(context, *call);
  check_database(context, *call);
  throw bad_request("Invalid _local document id.");
}

// /{db}/_all_docs/queries, /{db}/_compact/{design document}, /{db}/_index/{design document}/json/{name},
// /{db}/_shards/{document}
bool has_more(const std::vector<std::string>& path) {
  if (path[1] == "_index" || path[1] == "_shards") return true;
  if (path.size() != 3) return false;
  return path[1] == "_compact" ||
         (path[2] == "queries" &&
          (path[1] == "_all_docs" || path[1] == "_design_docs" || path[1] == "_local_docs"));
}

Async<RouteResult> other_route(const Context& context, const CallPtr& call);

// /{db}/_partition/{partition} and what is below it.
Async<RouteResult> partition_route(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 2) throw bad_request("invalid_partition_req");
  if (path.size() == 3) return returned(partition_info(context, call));
  context.store.run([&](kv::Transaction& tx) {
    if (!context.catalog.open(tx, path[0]).is_partitioned()) throw bad_request("database is not partitioned");
  });
  docs::check_partition(path[2]);
  const std::string& third = path[3];
  const bool is_listing =
      third == "_all_docs" || third == "_find" || third == "_explain" || third == "_index";
  const bool is_of_design = third == "_design" && path.size() >= 6 && path[5].starts_with('_');
  if (!is_listing && !is_of_design) throw not_found("missing");
  call->enter_partition();
  return other_route(context, call);
}

// Routes that begin on a worker thread.
Async<RouteResult> other_route(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 1) return returned(database(context, call));
  const std::string& second = path[1];
  if (second == "_design" && path.size() >= 3) return design_route(context, call);
  if (second == "_local" || second == docs::kLocalPrefix) reject_local_route(context, call);
  if (second == "_bulk_docs") throw not_found("missing");  // a longer path
  if (second == "_partition") return partition_route(context, call);
  const auto found = database_routes().find(second);
  if (found != database_routes().end()) {
    if (path.size() > 2 && !has_more(path)) throw not_found("missing");
    return begin(found->second, context, call);
  }
  if (const auto* entry = find_unsupported(Level::database, second)) {
    check_database(context, *call);
    reject_unsupported(*call, *entry);
  }
  if (second == "_temp_view") throw Error(410, "gone", "Temporary views are not supported in CouchDB");
  return attachment_route(context, *call);
}

bool names_document(const std::vector<std::string>& path) {
  if (path.size() != 2 && path.size() != 3) return false;
  const std::string& second = path[1];
  const bool is_local = second == "_local" || second == docs::kLocalPrefix;
  if (path.size() == 3) return is_local || second == "_design";
  return !is_local && second != "_temp_view" && second != "_bulk_docs" && second != "_partition" &&
         !database_routes().contains(second) && find_unsupported(Level::database, second) == nullptr;
}

// The id of the document that a path names.
std::string document_id(const std::vector<std::string>& path) {
  if (path.size() == 2) return path[1];
  return std::string(path[1] == "_design" ? docs::kDesignPrefix : docs::kLocalPrefix) + path[2];
}

bool names_attachment(const std::vector<std::string>& path) {
  if (path.size() < 3 || !is_database(path[0])) return false;
  if (path[1] == "_design") return path.size() >= 4 && !path[3].starts_with('_');
  return !path[1].starts_with('_');
}

// Returns true if the route reads the body with read_body().
bool has_attachments(const http::Request& head) {
  if (head.method() != "PUT") return false;
  const bool is_related = http::is_media_type(head.header("Content-Type").value_or(""), "multipart/related");
  // The path of a document, "/db/doc", need not be decoded.
  if (!is_related && std::ranges::count(head.path(), '/') <= 2) return false;
  try {
    auto path = decoded_path(head);
    split_design_id(path);
    return names_attachment(path) ||
           (is_related && !path.empty() && is_database(path[0]) && names_document(path) &&
            !document_id(path).starts_with(docs::kLocalPrefix));
  } catch (const Error&) { return false; }  // the request is refused
}

// Returns true if the request reads or writes a document, and is handled quickly.
bool is_short_document_request(const Call& call) {
  const auto& path = call.path();
  // Passwords in users' documents are hashed, which is slow on purpose. `open_revs` may read many revisions.
  if (!call.is_short() || path[0] == docs::kUsersDatabase || call.param("open_revs")) return false;
  return names_document(path) || (path.size() == 1 && call.method() == "POST");
}

Async<RouteResult> in_database(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 1 && call->method() == "POST") return create_document(context, *call);
  if (names_document(path)) {
    auto id = document_id(path);
    if (id.starts_with(docs::kLocalPrefix)) return local_document(context, *call, std::move(id));
    return document(context, *call, std::move(id));
  }
  if (path.size() == 2 && path[1] == "_bulk_docs") return bulk_documents(context, *call);
  return other_route(context, call);
}

bool may_block(const Call& call) {
  const auto& path = call.path();
  if (path.empty()) return false;
  if (is_database(path[0])) return !is_short_document_request(call);
  const auto found = server_routes().find(path[0]);
  return found == server_routes().end() || found->second.may_block;
}

Async<RouteResult> server_route(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  const auto found = server_routes().find(path[0]);
  if (found == server_routes().end()) {
    if (const auto* entry = find_unsupported(Level::server, path[0])) reject_unsupported(*call, *entry);
    if (call->method() == "PUT") docs::check_database_name(path[0]);
    throw not_found("Database does not exist.");
  }
  if (!found->second.has_more && path.size() > 1) throw not_found("missing");
  if (found->second.access == Access::admins) call->require_admin();
  if (call->has_streamed_body()) {
    const bool is_known = call->user().admin || !call->user().name.empty();
    if (!is_known) throw unauthorized("Authentication required.");
    co_await collect_body(context, *call);
  }
  co_return co_await begin(found->second.route, context, call);
}

Async<RouteResult> choose_route(const Context& context, const CallPtr& call) {
  if (call->path().empty()) return returned(welcome(context, call));
  return is_database(call->path()[0]) ? in_database(context, call) : server_route(context, call);
}

}  // namespace

http::StreamedBody streamed_bodies(std::uint64_t max_bytes) {
  return [max_bytes](const http::Request& head) -> std::optional<std::uint64_t> {
    if (has_attachments(head)) return UINT64_MAX;
    // A login has no user yet.
    const bool is_login = head.path() == "/_session";
    const auto length = content_length(head);
    if (is_login || (length && *length <= kMaxShortBody)) return std::nullopt;
    return max_bytes;
  };
}

Async<RouteResult> route(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  // Not 404, which would mean that a database does not exist.
  if (!context.serves && (path.empty() || (path[0] != "_up" && path[0] != "_node")))
    throw Error(503, "service_unavailable", "This process runs background work only.");
  if (!path.empty() && is_database(path[0])) {
    if (call->user().admin) {
      call->set_database_access(DatabaseAccess::admin);
    } else {
      co_await authorize(context, *call);
    }
    if (call->has_streamed_body() && !has_attachments(call->request())) {
      const bool creates_database = path.size() == 1 && call->method() == "PUT";
      if (call->user().admin && !creates_database)
        co_await call->run(context.store, [&](kv::Transaction& tx) { context.catalog.open(tx, path[0]); });
      co_await collect_body(context, *call);
    }
  }
  if (may_block(*call)) co_await call->executor().allow_blocking();
  co_return co_await choose_route(context, call);
}

}  // namespace divan::api
