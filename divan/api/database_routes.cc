// Databases, and lists of them.
#include <fmt/core.h>

#include <algorithm>

#include "divan/api/database_access.h"
#include "divan/api/queries.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/compaction/compactor.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/http/etag.h"
#include "divan/index/unused.h"

namespace divan::api {
namespace {

// Maximum number of databases in a request for several databases' infos.
constexpr std::size_t kMaxInfos = 100;

std::string info_json(const docs::Database& database, const docs::DatabaseInfo& info, bool is_compacting) {
  const std::string seq = json::quoted(docs::to_sequence(info.update_seq));
  return fmt::format(
      R"({{"db_name":{0},"purge_seq":{6},"update_seq":{1},"sizes":{{"file":{8},"external":{2},"active":{2}}},)"
      R"("props":{{{7}}},"doc_del_count":{3},"doc_count":{4},"disk_format_version":8,"compact_running":{9},)"
      R"("cluster":{{"q":1,"n":1,"w":1,"r":1}},"instance_start_time":"{5}"}})",
      json::quoted(database.name()), seq, info.active_bytes(), info.doc_del_count, info.doc_count,
      database.created_ms() / 1000,
      json::quoted(info.purge_seq == kv::Versionstamp() ? "0" : docs::to_sequence(info.purge_seq)),
      database.is_partitioned() ? R"("partitioned":true)" : "", info.file_bytes(), is_compacting);
}

std::string read_info_json(const Context& context, const std::string& name) {
  return context.store.run([&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, name);
    return info_json(database, docs::read_info(tx, database), context.compactor.is_running(database));
  });
}

// The existing databases among `keys`.
std::vector<std::string> find_names(const Context& context, const index::views::ViewParams& params) {
  std::vector<std::string> keys = *params.keys;
  if (params.descending) std::ranges::reverse(keys);
  const auto end = keys.size();
  const std::size_t first = std::min<std::uint64_t>(params.skip, end);
  const std::size_t last = first + std::min<std::uint64_t>(params.limit.value_or(end), end - first);
  return context.store.run([&](kv::Transaction& tx) {
    std::vector<std::string> names;
    for (std::size_t i = first; i < last; ++i) {
      const auto name = id_of_key(keys[i]);
      if (context.catalog.find(tx, name)) names.push_back(name);
    }
    return names;
  });
}

// The names that match a listing's parameters, which are those of a listing of documents.
std::vector<std::string> list_names(const Context& context, Call& call) {
  const auto params = parse_query_params(call);
  check_listing_params(params);
  if (params.keys && params.keys->size() != 1) return find_names(context, params);
  if (params.limit == 0) return {};
  const auto range = document_range(params);
  docs::Catalog::ListOptions options;
  options.start_key = range.start_id;
  options.end_key = range.end_id;
  options.inclusive_end = range.inclusive_end;
  options.descending = range.descending;
  options.skip = params.skip;
  options.limit = params.limit.value_or(0);
  return context.store.run([&](kv::Transaction& tx) { return context.catalog.list(tx, options); });
}

std::vector<std::string> names_in_body(Call& call) {
  const std::string body = call.json_body();
  if (!body.starts_with('{')) throw bad_request("Request body must be a JSON object");
  const auto keys = json::member(body, "keys");
  if (!keys) throw bad_request("`keys` member must exist.");
  std::vector<std::string> names;
  const bool is_array = json::for_each_element(*keys, [&](std::string_view key) {
    names.push_back(json::string_value(key).value_or(""));
    return names.size() <= kMaxInfos;
  });
  if (!is_array) throw bad_request("`keys` member must be an array.");
  if (names.size() > kMaxInfos)
    throw bad_request(fmt::format("`keys` member exceeds the limit of {}.", kMaxInfos));
  return names;
}

// The store decides about shards and replicas: valid numbers are accepted, and ignored (docs/differences.md).
void check_shards(const Call& call) {
  for (const auto* name : {"q", "n"}) {
    const auto value = call.param(name);
    const bool is_number =
        !value || (!value->empty() && value->find_first_not_of("0123456789") == std::string::npos);
    if (!is_number || (value && value->find_first_not_of('0') == std::string::npos))
      throw bad_request(fmt::format("The `{}` value should be a positive integer.", name));
  }
  if (call.param("engine").value_or("couch") != "couch") throw bad_request("invalid_engine_extension");
}

bool parse_partitioned(const Call& call) {
  const auto partitioned = call.param("partitioned").value_or("false");
  if (partitioned != "true" && partitioned != "false") throw bad_request("Invalid `partitioned` parameter");
  return partitioned == "true";
}

// Databases are listed for administrators only, unless [chttpd] admin_only_all_dbs is false.
void check_may_list(const Context& context, const Call& call) {
  if (context.config.get_bool("chttpd", "admin_only_all_dbs", true)) call.require_admin();
}

}  // namespace

RouteResult database(const Context& context, const CallPtr& call) {
  call->allow("GET,PUT,POST,DELETE");
  const std::string& name = call->path()[0];
  if (call->method() == "GET") return json_response(200, read_info_json(context, name));
  if (call->method() == "PUT") {
    check_shards(*call);
    const bool is_partitioned = parse_partitioned(*call);
    const bool is_public = context.config.get("couchdb", "default_security", "") == "everyone";
    context.store.run([&](kv::Transaction& tx) {
      const auto created = context.catalog.create(tx, name, is_partitioned);
      if (is_public && !name.starts_with('_'))
        docs::write_config(tx, created, docs::kSecurity, kPublicSecurity);
    });
    return json_response(201, R"({"ok":true})",
                         {{"Location", absolute_uri(*call, "/" + http::percent_encode(name))}});
  }
  // CouchDB rejects this, since it is nearly always a document's URL whose end was lost.
  if (call->param("rev"))
    throw bad_request(
        "You tried to DELETE a database with a ?=rev parameter. Did you mean to DELETE a document instead?");
  context.store.run([&](kv::Transaction& tx) { context.catalog.remove(tx, name); });
  return ok_response();
}

RouteResult all_databases(const Context& context, const CallPtr& call) {
  call->allow("GET");
  check_may_list(context, *call);
  std::string out;
  json::Writer writer(out);
  writer.begin_array();
  for (const auto& name : list_names(context, *call)) writer.string(name);
  writer.end_array();
  const std::string etag = http::etag_of(out);
  if (auto unchanged = not_modified(*call, etag)) return *std::move(unchanged);
  return json_response(200, out, {{"ETag", etag}});
}

RouteResult databases_info(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  check_may_list(context, *call);
  const auto names = call->method() == "POST" ? names_in_body(*call) : list_names(context, *call);
  std::string out = "[";
  for (const auto& name : names) {
    out += fmt::format("{}{{\"key\":{},", out.size() > 1 ? ",\n" : "", json::quoted(name));
    try {
      out += "\"info\":" + read_info_json(context, name) + "}";
    } catch (const Error& error) {
      if (error.status() != 404) throw;
      out += R"("error":"not_found"})";
    }
  }
  return json_response(200, out + "]");
}

RouteResult security(const Context& context, const CallPtr& call) {
  call->allow("GET,PUT");
  const std::string& name = call->path()[0];
  if (call->method() == "PUT") {
    call->require_database_admin();
    if (name == docs::kUsersDatabase && !are_users_editable(context))
      throw forbidden("You can't edit the security object of the user database.");
    const std::string security = parse_security(call->json_body());
    context.store.run([&](kv::Transaction& tx) {
      docs::write_config(tx, context.catalog.open(tx, name), docs::kSecurity, security);
    });
    return ok_response();
  }
  const auto stored = context.store.run([&](kv::Transaction& tx) {
    return docs::read_config(tx, context.catalog.open(tx, name), docs::kSecurity);
  });
  return json_response(200, stored.value_or(std::string(kDefaultSecurity)));
}

RouteResult revisions_limit(const Context& context, const CallPtr& call) {
  call->allow("GET,PUT");
  const std::string& name = call->path()[0];
  if (call->method() == "PUT") {
    call->require_database_admin();
    const auto limit = json::int_value(call->json_body());
    if (!limit || *limit < 1 || *limit > 2000)
      throw bad_request("The revision limit must be an integer from 1 to 2000.");
    context.store.run([&](kv::Transaction& tx) {
      docs::write_config(tx, context.catalog.open(tx, name), "revs_limit", std::to_string(*limit));
    });
    return ok_response();
  }
  const auto limit = context.store.run(
      [&](kv::Transaction& tx) { return docs::revs_limit(tx, context.catalog.open(tx, name)); });
  return json_response(200, std::to_string(limit));
}

RouteResult maintenance(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const auto& path = call->path();
  // As CouchDB, which here answers 401 even to a user with a name.
  if (path[1] != "_ensure_full_commit" && call->database_access() != DatabaseAccess::admin)
    throw unauthorized("You are not a server or db admin.");
  const auto database = context.store.run([&](kv::Transaction& tx) {
    auto opened = context.catalog.open(tx, path[0]);
    // /{db}/_compact/{design document}
    if (path.size() == 3)
      docs::find_document(tx, opened, std::string(docs::kDesignPrefix) + path[2], std::nullopt);
    return opened;
  });
  if (path[1] == "_view_cleanup" || path[1] == "_geo_cleanup" || path[1] == "_search_cleanup") {
    context.store.run([&](kv::Transaction& tx) {
      index::remove_unused(tx, context.catalog.open(tx, call->path()[0]), context.kinds);
    });
  }
  // Views have nothing to compact.
  if (path[1] == "_compact" && path.size() == 2) context.compactor.request(database);
  // Commits are durable before the response.
  if (call->path()[1] == "_ensure_full_commit") {
    return json_response(
        201, fmt::format(R"({{"ok":true,"instance_start_time":"{}"}})", database.created_ms() / 1000));
  }
  return ok_response(202);
}

}  // namespace divan::api
