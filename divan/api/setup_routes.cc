// /_cluster_setup, with which installers and Fauxton set up a CouchDB. A Divan is set up by the settings with
// which it is started, so that this creates the system databases, and checks that the settings are those that
// the client wants.
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

constexpr std::size_t kMaxDatabases = 100;

// The databases of a member or parameter `ensure_dbs_exist`, a JSON array.
std::vector<std::string> databases_of(std::optional<std::string_view> json) {
  if (!json) return {"_users", "_replicator"};
  std::vector<std::string> names;
  const bool is_array = json::for_each_element(*json, [&](std::string_view element) {
    const auto name = json::string_value(element);
    if (!name || names.size() == kMaxDatabases)
      throw bad_request(
          fmt::format("`ensure_dbs_exist` must be at most {} names of databases.", kMaxDatabases));
    docs::check_database_name(*name);
    names.push_back(*name);
    return true;
  });
  if (!is_array) throw bad_request("`ensure_dbs_exist` must be an array of names of databases.");
  return names;
}

bool have_all(const Context& context, const std::vector<std::string>& names) {
  return context.store.run([&](kv::Transaction& tx) {
    return std::ranges::all_of(names,
                               [&](const auto& name) { return context.catalog.find(tx, name).has_value(); });
  });
}

void create_missing(const Context& context, const std::vector<std::string>& names) {
  context.store.run([&](kv::Transaction& tx) {
    for (const auto& name : names) {
      if (!context.catalog.find(tx, name)) context.catalog.create(tx, name);
    }
  });
}

RouteResult setup_state(const Context& context, const Call& call) {
  const auto parameter = call.param("ensure_dbs_exist");
  const bool is_finished =
      have_all(context, databases_of(parameter ? std::optional(json::compact(*parameter)) : std::nullopt));
  const bool is_cluster = context.is_shared;
  const char* state = is_cluster ? "cluster_enabled" : "single_node_disabled";
  if (is_finished) state = is_cluster ? "cluster_finished" : "single_node_enabled";
  return json_response(200, fmt::format(R"({{"state":"{}"}})", state));
}

// Throws bad_request unless `member` is missing or has the value of the setting, as text or number.
void check_setting(const Context& context, std::string_view body, std::string_view member) {
  const auto wanted = json::member(body, member);
  if (!wanted || *wanted == "null") return;
  const std::string text = json::string_value(*wanted).value_or(std::string(*wanted));
  const std::string present = context.config.get("chttpd", member, "");
  if (text == present) return;
  throw bad_request(
      fmt::format("`{}` is {}, not {}: it is only read at the start. Set [chttpd] {} in the settings file, "
                  "or --{} on the command line, and restart the server.",
                  member, present, text, member, member == "port" ? "port" : "bind"));
}

// Throws bad_request unless the body has no administrator, or one that exists, with the right password.
void check_administrator(const Context& context, std::string_view body) {
  const auto name_json = json::member(body, "username"), password_json = json::member(body, "password");
  if (!name_json && !password_json) return;
  const auto name = json::string_value(name_json.value_or("")),
             password = json::string_value(password_json.value_or(""));
  if (!name || !password) throw bad_request("`username` and `password` must be strings.");
  if (context.accounts.is_admin_password(*name, *password)) return;
  throw bad_request(
      "`username` and `password` are not those of an administrator. Administrators are set where the server "
      "is started: "
      "in the section [admins] of the settings file, or with --admin.");
}

[[noreturn]] void reject_cluster_action(const Context& context, const std::string& action) {
  if (context.is_shared && action == "enable_cluster") throw bad_request("Cluster is already enabled");
  throw bad_request(
      fmt::format("`{}` is not possible: a node joins a cluster when it is started with the cluster's store, "
                  "--store fdb:CLUSTER_FILE.",
                  action));
}

RouteResult set_up(const Context& context, Call& call) {
  const std::string body = call.json_body();
  if (!body.starts_with('{')) throw bad_request("Request body must be a JSON object");
  const auto action = json::string_value(json::member(body, "action").value_or("")).value_or("missing");
  const auto names = databases_of(json::member(body, "ensure_dbs_exist"));
  if (action == "enable_single_node") {
    if (context.is_shared) throw bad_request("This server is a node of a cluster.");
    check_setting(context, body, "bind_address");
    check_setting(context, body, "port");
    check_administrator(context, body);
  } else if (action == "finish_cluster") {
    if (have_all(context, names)) throw bad_request("Cluster is already finished");
  } else if (action == "enable_cluster" || action == "add_node" || action == "remove_node" ||
             action == "receive_cookie") {
    reject_cluster_action(context, action);
  } else {
    throw bad_request(
        fmt::format("Invalid action `{}`; expected enable_single_node or finish_cluster.", action));
  }
  create_missing(context, names);
  return ok_response(201);
}

}  // namespace

RouteResult cluster_setup(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  if (call->method() == "POST") return set_up(context, *call);
  return setup_state(context, *call);
}

}  // namespace divan::api
