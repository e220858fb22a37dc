// Information about the server.
#include <fmt/core.h>

#include <charconv>

#include "divan/api/build_tasks.h"
#include "divan/api/routes.h"
#include "divan/api/unsupported.h"
#include "divan/base/json.h"
#include "divan/docs/database_settings.h"
#include "divan/jobs/listing.h"

namespace divan::api {
namespace {

constexpr std::uint64_t kMaxUuids = 1000;
constexpr std::size_t kMaxTasks = 1000;
// The section of the settings with the administrators' names and passwords.
constexpr std::string_view kAdmins = "admins";

// Settings that are never shown, and can only be set where the server is started.
bool is_secret(std::string_view section, std::string_view key) {
  return section == kAdmins || (section == "fdb" && key == "tls_password") ||
         (section == "chttpd_auth" && key == "secret") || (section == "jwt_keys" && key.starts_with("hmac:"));
}

RouteResult metrics(const Context& context, const CallPtr& call) {
  call->allow("GET");
  http::Response response;
  response.headers.push_back({"Content-Type", "text/plain; version=0.0.4; charset=utf-8"});
  response.body = context.metrics.text();
  return response;
}

std::string config_json(std::string_view name, const Config::Section& section) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  for (const auto& [key, value] : section) {
    if (!is_secret(name, key)) writer.key(key).string(value);
  }
  writer.end_object();
  return out;
}

RouteResult read_config(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto& path = call->path();
  const auto all = context.config.all();
  if (path.size() == 3) {
    std::string out;
    json::Writer writer(out);
    writer.begin_object();
    for (const auto& [name, section] : all) {
      if (name != kAdmins) writer.key(name).raw(config_json(name, section));
    }
    writer.end_object();
    return json_response(200, out);
  }
  if (path[3] == kAdmins) throw forbidden("The administrators' passwords cannot be read.");
  const auto section = all.find(path[3]);
  return json_response(200, section == all.end() ? "{}" : config_json(section->first, section->second));
}

// /_node/_local/_config/{section}/{key}
RouteResult setting(const Context& context, const CallPtr& call) {
  call->allow("GET,PUT,DELETE");
  const auto& path = call->path();
  const std::string& section = path[3];
  const std::string& key = path[4];
  const auto unknown = not_found("unknown_config_value");
  if (section == kAdmins) throw forbidden("Administrators can only be set where the server is started.");
  if (is_secret(section, key))
    throw forbidden("This setting is secret: it can only be set where the server is started.");
  if (call->method() == "GET") {
    const auto value = context.config.get(section, key);
    if (!value) throw unknown;
    return json_response(200, json::quoted(*value));
  }
  std::optional<std::string> old;
  if (call->method() == "PUT") {
    const auto value = json::string_value(call->json_body());
    if (!value) throw bad_request("The value of a setting must be a JSON string.");
    old = context.config.set(section, key, *value);
  } else {
    old = context.config.erase(section, key);
    if (!old) throw unknown;
  }
  return json_response(200, json::quoted(old.value_or("")));
}

}  // namespace

RouteResult welcome(const Context& context, const CallPtr& call) {
  call->allow("GET");
  // `version` is that of the API: clients use it to find out which features they may use.
  return json_response(200, fmt::format(R"({{"couchdb":"Welcome","version":"3.5.0","uuid":"{}",)"
                                        R"("features":["db_updates","events","jobs","workers"],)"
                                        R"("vendor":{{"name":"Divan","version":"{}"}}}})",
                                        context.server_uuid, context.version));
}

RouteResult up(const Context& context, const CallPtr& call) {
  call->allow("GET");
  context.store.run([](kv::Transaction& tx) { tx.get("", kv::Isolation::snapshot); });
  return json_response(200, R"({"status":"ok","seeds":{}})");
}

RouteResult uuids(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto text = call->param("count").value_or("1");
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc::result_out_of_range || count > kMaxUuids)
    throw bad_request("count parameter too large");
  if (error != std::errc() || end != text.data() + text.size())
    throw bad_request("count must be a positive integer");
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("uuids").begin_array();
  for (std::uint64_t i = 0; i < count; ++i) writer.string(context.rng.uuid_at(context.clock.wall_ms()));
  writer.end_array().end_object();
  return json_response(200, out, {{"Cache-Control", "no-cache"}, {"Pragma", "no-cache"}});
}

RouteResult active_tasks(const Context& context, const CallPtr& call) {
  call->allow("GET");
  // Builders report to their jobs, so each node shows the builds of all nodes.
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
  });
  return json_response(200, out + "]");
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

RouteResult node(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() < 2) throw bad_request("Incomplete path to _node request");
  if (path[1] != "_local" && path[1] != context.node) throw not_found("no such node");
  const std::string what = path.size() > 2 ? path[2] : "";
  if (path.size() == 2) {
    std::string out;
    json::Writer(out).begin_object().key("name").string(context.node).end_object();
    return json_response(200, std::move(out));
  }
  const bool reloads = what == "_config" && path.size() == 4 && path[3] == "_reload";
  if (const auto* entry = find_unsupported(Level::node, reloads ? "_config/_reload" : what))
    reject_unsupported(*call, *entry);
  if (what == "_prometheus" && path.size() == 3) return metrics(context, call);
  if (what == "_config" && path.size() <= 4) return read_config(context, call);
  if (what == "_config" && path.size() == 5) return setting(context, call);
  throw not_found("missing");
}

}  // namespace divan::api
