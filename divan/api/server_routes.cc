// Information about the server.
#include <fmt/core.h>

#include <charconv>

#include "divan/api/active_tasks.h"
#include "divan/api/routes.h"
#include "divan/api/uuids.h"
#include "divan/base/json.h"
#include "divan/docs/database_settings.h"
#include "divan/jobs/listing.h"
#include "divan/replicator/jobs.h"

namespace divan::api {
namespace {

constexpr std::size_t kMaxTasks = 1000;

}  // namespace

RouteResult welcome(const Context& context, const CallPtr& call) {
  call->allow("GET");
  // `version` is that of the API: clients use it to find out which features they may use.
  return json_response(
      200, fmt::format(R"({{"couchdb":"Welcome","version":"3.5.0","uuid":"{}",)"
                       R"("features":["db_updates","events","jobs","partitioned","search","workers"],)"
                       R"("vendor":{{"name":"Divan","version":"{}"}}}})",
                       context.server_uuid, context.version));
}

RouteResult up(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto mode = context.config.get("couchdb", "maintenance_mode", "false");
  if (mode != "false") {
    return json_response(404,
                         fmt::format(R"({{"status":"{}"}})", mode == "true" ? "maintenance_mode" : mode));
  }
  context.store.run([](kv::Transaction& tx) { tx.get("", kv::Isolation::snapshot); });
  return json_response(200, R"({"status":"ok","seeds":{}})");
}

RouteResult uuids(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto text = call->param("count").value_or("1");
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto most =
      static_cast<std::uint64_t>(context.config.get_int("uuids", "max_count", kMaxUuids, 0, INT64_MAX));
  if (error == std::errc::result_out_of_range || count > most) throw bad_request("count parameter too large");
  if (error != std::errc() || end != text.data() + text.size())
    throw bad_request("count must be a positive integer");
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("uuids").begin_array();
  for (std::uint64_t i = 0; i < count; ++i) writer.string(context.uuids.next());
  writer.end_array().end_object();
  return json_response(200, out, {{"Cache-Control", "no-cache"}, {"Pragma", "no-cache"}});
}

RouteResult active_tasks(const Context& context, const CallPtr& call) {
  call->allow("GET");
  // Builders report to their jobs, so each node shows the builds of all nodes; but only its own compactions.
  std::string out = "[";
  context.store.run([&](kv::Transaction& tx) {
    out = "[";
    for (const auto& kind : context.kinds) {
      for (const auto& job : jobs::list_jobs(context.queue, tx, kind->name(),
                                             {.state = jobs::State::running, .limit = kMaxTasks})
                                 .jobs) {
        if (out.size() > 1) out += ",\n";
        append_build_task(out, context, tx, job);
      }
    }
    for (const auto& job : jobs::list_jobs(context.queue, tx, replicator::kJobType,
                                           {.state = jobs::State::running, .limit = kMaxTasks})
                               .jobs)
      append_replication_task(out, context, tx, job);
    for (const auto& compaction : context.compactor.running()) {
      if (out.size() > 1) out += ",\n";
      append_compaction_task(out, context, tx, compaction);
    }
  });
  return json_response(200, out + "]");
}

RouteResult reload_query_servers(const Context& context, const CallPtr& call) {
  call->allow("POST");
  context.js_pool.replace_processes();
  return ok_response();
}

// A node is a member as long as its heartbeat advances, so the known nodes are those of the cluster.
RouteResult membership(const Context& context, const CallPtr& call) {
  call->allow("GET");
  workers::Members nodes;
  std::map<std::string, std::string> loads;
  context.store.run([&](kv::Transaction& tx) {
    nodes = context.registry.members(tx, workers::kNodeRole);
    loads = context.registry.loads(tx, workers::kNodeRole);
  });
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  for (const char* which : {"all_nodes", "cluster_nodes"}) {
    writer.key(which).begin_array();
    for (const auto& node : nodes.workers) writer.string(node.id);
    writer.end_array();
  }
  writer.key("nodes").begin_object();
  for (const auto& node : nodes.workers) {
    writer.key(node.id).begin_object();
    json::for_each_member(node.options, [&](std::string_view name, std::string_view value) {
      writer.key(name).raw(value);
      return true;
    });
    // Available since the node's first heartbeat.
    if (const auto load = loads.find(node.id); load != loads.end()) writer.key("load").raw(load->second);
    writer.end_object();
  }
  writer.end_object().end_object();
  return json_response(200, std::move(out));
}

}  // namespace divan::api
