// Shards, as clients of CouchDB ask for them: a database is one range, which cannot be split, since the store
// distributes its rows by itself.
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

constexpr std::string_view kWholeRange = "00000000-ffffffff";
constexpr const char* kNoSplits =
    "Shards cannot be split: each database has one, and the store distributes its rows.";

// The nodes that serve all databases, as a JSON array; throws not_found unless the database exists.
std::string nodes_json(const Context& context, const std::string& database) {
  workers::Members nodes;
  context.store.run([&](kv::Transaction& tx) {
    context.catalog.open(tx, database);
    nodes = context.registry.members(tx, workers::kNodeRole);
  });
  std::string out;
  json::Writer writer(out);
  writer.begin_array();
  for (const auto& node : nodes.workers) {
    if (json::member(node.options, "serves").value_or("true") == "true") writer.string(node.id);
  }
  writer.end_array();
  return out;
}

// PUT /_reshard/state: the only possible state may be set.
RouteResult set_state(Call& call) {
  const std::string body = call.json_body();
  const auto member = json::member(body, "state");
  if (!member) throw bad_request("Expected a `state` field");
  const auto state = json::string_value(*member);
  if (state == "stopped") return ok_response();
  if (state == "running") throw Error(501, "not_implemented", kNoSplits);
  throw bad_request("State field not `running` or `stopped`");
}

// /_reshard/state
RouteResult reshard_state(Call& call) {
  call.allow("GET,PUT");
  if (call.method() == "PUT") return set_state(call);
  return json_response(200, fmt::format(R"({{"state":"stopped","reason":"{}"}})", kNoSplits));
}

// /_reshard/jobs
RouteResult reshard_jobs(Call& call) {
  call.allow("GET,POST");
  if (call.method() == "POST") throw Error(501, "not_implemented", kNoSplits);
  return json_response(200, R"({"total_rows":0,"offset":0,"jobs":[]})");
}

}  // namespace

RouteResult shards(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto& path = call->path();
  const std::string nodes = nodes_json(context, path[0]);
  if (path.size() == 2)
    return json_response(200, fmt::format(R"({{"shards":{{"{}":{}}}}})", kWholeRange, nodes));
  return json_response(200, fmt::format(R"({{"range":"{}","nodes":{}}})", kWholeRange, nodes));
}

RouteResult sync_shards(const Context& context, const CallPtr& call) {
  call->require_admin();
  call->allow("POST");
  context.store.run([&](kv::Transaction& tx) { context.catalog.open(tx, call->path()[0]); });
  return ok_response(202);
}

RouteResult reshard(const Context&, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 1) {
    call->allow("GET");
    return json_response(200,
                         fmt::format(R"({{"state":"stopped","state_reason":"{}","completed":0,"failed":0,)"
                                     R"("running":0,"stopped":0,"total":0}})",
                                     kNoSplits));
  }
  if (path.size() == 2 && path[1] == "state") return reshard_state(*call);
  if (path.size() == 2 && path[1] == "jobs") return reshard_jobs(*call);
  throw not_found("missing");  // there are no jobs
}

}  // namespace divan::api
