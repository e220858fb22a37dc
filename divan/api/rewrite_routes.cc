// Rewriting of requests: /{db}/_design/{name}/_rewrite/{path}
// (https://docs.couchdb.org/en/stable/api/ddoc/rewrites.html).
//
// A rewritten request has the user, the body and, except for the fields that a function sets, the header of
// the first one. It is handled as if the client had sent it, and may be rewritten again.
#include <fmt/core.h>

#include <algorithm>

#include "divan/api/function_call.h"
#include "divan/api/function_request.h"
#include "divan/api/rewrite_rules.h"
#include "divan/api/session_routes.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"

namespace divan::api {
namespace {

Error rewrite_error(std::string reason) { return {500, "rewrite_error", std::move(reason)}; }
Error no_rewrite() { return {404, "rewrite_error", "Invalid path."}; }

// What a request becomes. Empty members are those of the first request.
struct Rewrite {
  std::string target{};  // absolute
  std::string method{};
  http::Headers headers{};
  std::optional<std::string> body{};
  bool is_by_rules = false;
};

// The path of the design document, percent-encoded.
std::string base_of(const std::vector<std::string>& path) {
  return fmt::format("/{}/_design/{}", http::percent_encode(path[0]), http::percent_encode(path[2]));
}

// [chttpd] secure_rewrites, or its older name.
bool is_secure(const Config& config) {
  const char* section = config.get("chttpd", "secure_rewrites", "").empty() ? "httpd" : "chttpd";
  return config.get_bool(section, "secure_rewrites", true);
}

Rewrite rewrite_by_rules(const Context& context, const Call& call, std::string_view rules) {
  const auto& path = call.path();
  const RewrittenRequest request{
      .method = call.method(), .path = {path.begin() + 4, path.end()}, .query = call.params()};
  const auto target = apply_rewrite_rules(rules, request, is_secure(context.config));
  if (!target) throw not_found("missing");
  return {.target = resolve_path(base_of(path), *target), .is_by_rules = true};
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs string_members(std::string_view object, std::string_view name) {
  Pairs pairs;
  const bool is_object =
      json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
        auto text = json::string_value(value);
        if (!text) throw rewrite_error(fmt::format("bad {}: object key/value must be strings", name));
        pairs.emplace_back(json::unescape(raw_name), *std::move(text));
        return true;
      });
  if (!is_object) throw rewrite_error(fmt::format("bad {}", name));
  return pairs;
}

// The members of what a rewrite function returns, in CouchDB's types.
class RewriteResult {
 public:
  explicit RewriteResult(std::string_view json) : members_(json::members_of(json)) {}

  std::optional<std::string> text(std::string_view name) const {
    const auto value = json::find(members_, name);
    if (!value) return std::nullopt;
    auto text = json::string_value(*value);
    if (!text) throw rewrite_error(fmt::format("bad {}", name));
    return text;
  }
  std::optional<Pairs> pairs(std::string_view name) const {
    const auto value = json::find(members_, name);
    if (!value) return std::nullopt;
    return string_members(*value, name);
  }
  std::optional<std::int64_t> code() const {
    const auto value = json::find(members_, "code");
    if (!value) return std::nullopt;
    const auto code = json::int_value(*value);
    if (!code || *code < 200 || *code > 599) throw rewrite_error("bad code");
    return code;
  }
  std::string_view raw(std::string_view name, std::string_view fallback) const {
    return json::find(members_, name).value_or(fallback);
  }

 private:
  json::Members members_;
};

http::Response immediate_response(const RewriteResult& result, std::int64_t code) {
  result.pairs("headers");
  result.text("body");
  return response_of(fmt::format(R"({{"code":{},"headers":{},"body":{}}})", code, result.raw("headers", "{}"),
                                 result.raw("body", "\"\"")));
}

Rewrite rewrite_of(const Call& call, const RewriteResult& result) {
  const auto path = result.text("path");
  if (!path) throw rewrite_error("Rewrite result must produce a new path.");
  Rewrite rewrite{.target = resolve_path(base_of(call.path()), *path),
                  .method = result.text("method").value_or(""),
                  .body = result.text("body")};
  std::string query(call.request().query());
  if (const auto pairs = result.pairs("query")) {
    query.clear();
    for (const auto& [name, value] : *pairs)
      query += (query.empty() ? "" : "&") + http::percent_encode(name) + "=" + http::percent_encode(value);
  }
  if (!query.empty()) rewrite.target += "?" + query;
  if (has_control(rewrite.target) || rewrite.target.size() > kMaxRewrittenBytes)
    throw rewrite_error("bad path");
  if (has_control(rewrite.method)) throw rewrite_error("bad method");
  for (auto& [name, value] : result.pairs("headers").value_or(Pairs())) {
    if (name.empty() || has_control(name) || has_control(value)) throw rewrite_error("bad headers");
    rewrite.headers.push_back({std::move(name), std::move(value)});
  }
  return rewrite;
}

// Fields of the first request that do not apply to the rewritten one.
bool is_dropped(std::string_view name, bool has_own_body) {
  const auto is = [&](std::string_view other) { return http::equal_ignoring_case(name, other); };
  if (is("X-HTTP-Method-Override") || is("Expect")) return true;
  return has_own_body &&
         (is("Content-Length") || is("Transfer-Encoding") || is("Content-Encoding") || is("Content-MD5"));
}

http::Request rewritten_request(Call& call, Rewrite rewrite) {
  const auto& first = call.request();
  http::Request request(rewrite.method.empty() ? call.method() : rewrite.method, rewrite.target,
                        first.minor_version());
  request.set_peer(first.peer());
  const bool has_own_body = rewrite.body.has_value();
  for (const auto& [name, value] : first.headers()) {
    const bool is_replaced = std::ranges::any_of(rewrite.headers, [&](const http::Header& header) {
      return http::equal_ignoring_case(header.name, name);
    });
    if (!is_replaced && !is_dropped(name, has_own_body)) request.add_header(name, value);
  }
  for (const auto& [name, value] : rewrite.headers) {
    if (!is_dropped(name, true)) request.add_header(name, value);
  }
  if (has_own_body) request.add_header("Content-Length", std::to_string(rewrite.body->size()));
  request.set_body(has_own_body ? *std::move(rewrite.body) : call.take_body());
  return request;
}

// The author of the function must not use the rights of those who call it, where it has none itself.
void check_rights(const Context& context, const Call& call, const Call& rewritten, bool is_by_rules) {
  const bool only_reads = call.method() == "GET" && rewritten.method() == "GET";
  const auto& path = rewritten.path();
  // The database itself is created and deleted by administrators of the server.
  const bool is_in_database = path.size() > 1 || rewritten.method() == "GET" || rewritten.method() == "POST";
  const bool is_within = !path.empty() && path[0] == call.path()[0] && is_in_database;
  if (!is_within && is_secure(context.config) && (is_by_rules || !only_reads))
    throw Error(500, "insecure_rewrite_rule", "The new path is not in the database.");
  // A page of another origin can send the first request, but not the second one.
  if (call.has_ambient_credentials() && call.method() == "GET" && !only_reads)
    throw forbidden("With a session, a GET request is not rewritten to another method.");
  if (is_login(rewritten)) throw Error(501, "not_implemented", "A login cannot be rewritten.");
}

}  // namespace

Async<RouteResult> rewrite(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  const std::int64_t limit = context.config.get_int("chttpd", "rewrite_limit", 100, 0, 1000);
  if (call->rewrites() >= limit) throw bad_request("Exceeded rewrite recursion limit");
  std::string rules;  // if `rewrites` is an array
  FunctionCall function;
  co_await call->run(context.store, [&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, path[0]);
    const auto design = read_design(tx, database, *call);
    const auto rewrites = json::find(json::members_of(design.body), "rewrites");
    if (!rewrites) throw no_rewrite();
    rules.clear();
    if (rewrites->starts_with('[')) {
      rules = *rewrites;
      return;
    }
    const std::string name[] = {"rewrites"};
    function = read_function(database, *call, design.body, name);
    function.arguments = "[" + rewrite_request(tx, database, *call) + "]";
  });
  Rewrite rewrite;
  if (!rules.empty()) {
    rewrite = rewrite_by_rules(context, *call, rules);
  } else {
    const std::string result = co_await call_function(context, *call, function, FunctionUse::show,
                                                      js::ResultKind::call, "rewrite_error");
    const auto value = json::find(json::members_of(result), "value").value_or("null");
    if (value == "null" || value == "false" || value == "0" || value == "\"\"") throw no_rewrite();
    const std::string object =
        value.starts_with('"') ? "{\"path\":" + std::string(value) + "}" : std::string(value);
    if (!object.starts_with('{')) throw rewrite_error("bad rewrite");
    const RewriteResult members(object);
    if (const auto code = members.code()) co_return immediate_response(members, *code);
    rewrite = rewrite_of(*call, members);
  }
  const bool is_by_rules = rewrite.is_by_rules;
  auto request = rewritten_request(*call, std::move(rewrite));
  const auto rewritten = std::make_shared<Call>(*call, std::move(request));
  check_rights(context, *call, *rewritten, is_by_rules);
  co_return co_await route(context, rewritten);
}

}  // namespace divan::api
