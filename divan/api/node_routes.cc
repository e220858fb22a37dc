// One node: its settings, statistics, log and versions, and its restart.
#include <fmt/core.h>

#include "divan/api/history.h"
#include "divan/api/routes.h"
#include "divan/api/statistics.h"
#include "divan/api/unsupported.h"
#include "divan/base/json.h"
#include "divan/base/log_lines.h"
#include "divan/collation/strings.h"

namespace divan::api {
namespace {

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

// /_node/_local/_config...
RouteResult config(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 4 && path[3] == "_reload") {
    call->allow("POST");
    context.node_control.reload_settings();
    return ok_response();
  }
  if (path.size() <= 4) return read_config(context, call);
  if (path.size() == 5) return setting(context, call);
  throw not_found("missing");
}

// /_node/_local/_stats...
RouteResult statistics(const Context& context, const CallPtr& call) {
  call->allow("GET");
  return json_response(200, context.statistics->json(std::span(call->path()).subspan(3)));
}

RouteResult system(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto use = context.node_control.read_use();
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("uptime").number(use.uptime_s);
  writer.key("memory").begin_object().key("other").number(use.memory_bytes).end_object();
  writer.key("run_queue").number(number(context.pool.queued()));
  writer.key("context_switches").number(use.context_switches);
  writer.key("io_input").number(use.read_bytes).key("io_output").number(use.written_bytes);
  writer.key("os_proc_count").number(number(context.js_pool.stats().alive));
  writer.key("message_queues").begin_object().end_object();
  writer.key("internal_replication_jobs").number(0);
  writer.key("distribution").begin_object().end_object();
  writer.key("disk").begin_object().key("total").number(use.disk.total_bytes);
  writer.key("free").number(use.disk.free_bytes).end_object();
  writer.end_object();
  return json_response(200, std::move(out));
}

RouteResult versions(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto collation = collation::StringCollator::of_this_thread().versions();
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("javascript_engine").begin_object().key("name").string("spidermonkey");
  writer.key("version").string(context.javascript_version).end_object();
  writer.key("collation_driver").begin_object().key("name").string("libicu");
  writer.key("library_version").string(collation.library);
  writer.key("collation_algorithm_version").string(collation.algorithm);
  writer.key("collator_version").string(collation.collator).end_object().end_object();
  return json_response(200, std::move(out));
}

RouteResult history(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto samples = call->count("samples").value_or(History::kSamples);
  return json_response(200, context.history->json(samples, call->param("type").value_or("")));
}

RouteResult describe_settings(const Context& context, const CallPtr& call) {
  call->allow("GET");
  return json_response(200, context.node_control.describe_settings());
}

RouteResult log_lines(const CallPtr& call) {
  call->allow("GET");
  const auto limit = call->count("limit").value_or(log::kRecentLines);
  const auto after = std::min<std::uint64_t>(call->count("after").value_or(0), INT64_MAX);
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("lines").begin_array();
  for (const auto& line : log::recent_lines(limit, static_cast<std::int64_t>(after))) {
    writer.begin_object().key("time").number(line.time_us);
    writer.key("level").string(line.level).key("text").string(line.text).end_object();
  }
  writer.end_array().end_object();
  return json_response(200, std::move(out));
}

RouteResult restart(const Context& context, const CallPtr& call) {
  call->allow("POST");
  context.node_control.restart();
  return ok_response();
}

// What users with kMetricsRole may read.
bool is_measurement(std::string_view name) {
  return name == "_prometheus" || name == "_stats" || name == "_system" || name == "_history";
}

void authorize_node(const Call& call) {
  const auto& path = call.path();
  if (path.size() < 3 || !is_measurement(path[2])) return call.require_admin();
  if (!call.user().admin && !call.user().has_role(kMetricsRole))
    throw unauthorized("You are not a server admin or read-only metrics user");
}

}  // namespace

RouteResult node(const Context& context, const CallPtr& call) {
  authorize_node(*call);
  const auto& path = call->path();
  if (path.size() < 2) throw bad_request("Incomplete path to _node request");
  if (path[1] != "_local" && path[1] != context.node) throw not_found("no such node");
  if (path.size() == 2) {
    call->allow("GET");
    std::string out;
    json::Writer(out).begin_object().key("name").string(context.node).end_object();
    return json_response(200, std::move(out));
  }
  const std::string& what = path[2];
  if (const auto* entry = find_unsupported(Level::node, what)) reject_unsupported(*call, *entry);
  if (what == "_config") return config(context, call);
  if (what == "_stats") return statistics(context, call);
  if (path.size() > 3) throw not_found("missing");
  if (what == "_prometheus") return metrics(context, call);
  if (what == "_system") return system(context, call);
  if (what == "_versions") return versions(context, call);
  if (what == "_history") return history(context, call);
  if (what == "_settings") return describe_settings(context, call);
  if (what == "_log") return log_lines(call);
  if (what == "_restart") return restart(context, call);
  throw not_found("missing");
}

}  // namespace divan::api
