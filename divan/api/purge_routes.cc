// Purging (https://docs.couchdb.org/en/stable/api/database/misc.html#db-purge).
#include <fmt/core.h>

#include <map>

#include "divan/api/purge_limits.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/purge.h"
#include "divan/purge/ttl.h"

namespace divan::api {
namespace {

// The body {"id": ["1-a", ...], ...}
std::vector<docs::PurgeRequest> parse_purge(const std::string& body, std::int64_t max_revisions) {
  std::vector<docs::PurgeRequest> requests;
  std::int64_t count = 0;
  std::map<std::string, std::size_t> places;  // of the ids in `requests`
  const bool is_object = json::for_each_member(body, [&](std::string_view name, std::string_view revisions) {
    std::string id = json::unescape(name);
    const auto [place, is_new] = places.emplace(id, requests.size());
    if (is_new) requests.push_back({std::move(id), {}});
    auto& request = requests[place->second];
    const bool is_array = json::for_each_element(revisions, [&](std::string_view element) {
      const auto text = json::string_value(element);
      if (!text) throw bad_request("Invalid rev format");
      request.revisions.push_back(docs::parse_revision(*text));
      ++count;
      return true;
    });
    if (!is_array) throw bad_request("The revisions of a document must be an array.");
    return true;
  });
  if (!is_object) throw bad_request("Request body must be a JSON object");
  if (count > max_revisions) throw bad_request("Exceeded maximum number of revisions.");
  return requests;
}

void append_revisions(json::Writer& writer, std::span<const docs::Revision> revisions) {
  writer.begin_array();
  for (const auto& revision : revisions) writer.string(revision.to_string());
  writer.end_array();
}

docs::Database open(const Context& context, const Call& call) {
  return context.store.run([&](kv::Transaction& tx) { return context.catalog.open(tx, call.path()[0]); });
}

}  // namespace

std::int64_t max_purged_revisions(const Config& config) {
  constexpr const char* kSection = "purge";
  constexpr const char* kKey = "max_revisions_number";
  if (config.get(kSection, kKey, std::string(purge::kInfinity)) == purge::kInfinity) return INT64_MAX;
  return config.get_int(kSection, kKey, 0, 0, INT64_MAX);
}

RouteResult purge_documents(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const docs::Database database = open(context, *call);
  const auto requests = parse_purge(call->json_body(), max_purged_revisions(context.config));
  const auto purged = docs::purge(context.store, database, requests, checkpoint_of(*call));
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("purge_seq").null().key("purged").begin_object();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    writer.key(requests[i].id);
    append_revisions(writer, purged[i]);
  }
  writer.end_object().end_object();
  return json_response(201, out);
}

RouteResult purge_records(const Context& context, const CallPtr& call) {
  call->allow("GET");
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    json::Writer writer(out);
    writer.begin_object().key("purged_infos").begin_array();
    docs::visit_purge_records(tx, context.catalog.open(tx, call->path()[0]),
                              [&](const docs::PurgeRecord& record) {
                                writer.begin_object().key("id").string(record.request.id).key("revs");
                                append_revisions(writer, record.request.revisions);
                                writer.end_object();
                                return true;
                              });
    writer.end_array().end_object();
  });
  return json_response(200, out);
}

RouteResult purge_records_limit(const Context& context, const CallPtr& call) {
  call->allow("GET,PUT");
  const std::string& name = call->path()[0];
  if (call->method() == "PUT") {
    const auto limit = json::int_value(call->json_body());
    if (!limit || *limit < 1) throw bad_request("`purged_infos_limit` must be positive integer");
    docs::set_purge_records_limit(context.store, context.catalog, name, *limit);
    return ok_response();
  }
  const auto limit = context.store.run(
      [&](kv::Transaction& tx) { return docs::purge_records_limit(tx, context.catalog.open(tx, name)); });
  return json_response(200, std::to_string(limit));
}

RouteResult auto_purge(const Context& context, const CallPtr& call) {
  call->allow("GET,PUT");
  const std::string& name = call->path()[0];
  if (call->method() == "PUT") {
    call->require_database_admin();
    const std::string settings = call->json_body();
    purge::check_auto_purge(settings);
    if (settings.size() > kv::kMaxValueBytes) throw Error(413, "too_large", "The settings are too large.");
    context.store.run([&](kv::Transaction& tx) {
      docs::write_config(tx, context.catalog.open(tx, name), docs::kAutoPurge, settings);
    });
    return ok_response(201);
  }
  const auto stored = context.store.run([&](kv::Transaction& tx) {
    return docs::read_config(tx, context.catalog.open(tx, name), docs::kAutoPurge);
  });
  return json_response(200, stored.value_or("{}"));
}

}  // namespace divan::api
