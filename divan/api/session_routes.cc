#include "divan/api/session_routes.h"

#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

bool is_session(const Call& call) { return call.path().size() == 1 && call.path()[0] == "_session"; }

// The members of a login by name; nullopt for a name that does not occur.
using Form = std::function<std::optional<std::string>(std::string_view name)>;

Form read_form(Call& call) {
  const auto type = call.header("Content-Type").value_or("");
  if (type.starts_with("application/x-www-form-urlencoded")) {
    return [fields = http::parse_query(call.body())](std::string_view name) -> std::optional<std::string> {
      for (const auto& field : fields) {
        if (field.name == name) return field.value;
      }
      return std::nullopt;
    };
  }
  if (!type.starts_with("application/json")) {
    throw Error(415, "bad_content_type",
                "Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'");
  }
  return [json = call.json_body()](std::string_view name) -> std::optional<std::string> {
    const auto value = json::member(json, name);
    if (!value) return std::nullopt;
    auto text = json::string_value(*value);
    if (!text) throw bad_request(fmt::format("`{}` must be a string.", name));
    return text;
  };
}

std::string user_name(const Form& form) {
  const auto name = form("name"), username = form("username");
  if (!name && !username) throw bad_request("request body must contain a username");
  if (name && username && *name != *username) throw bad_request("request body contains different usernames");
  return name ? *name : *username;
}

// The path of this server to which the client is redirected, percent-encoded.
std::optional<std::string> next_path(const Call& call) {
  const auto next = call.param("next");
  if (!next) return std::nullopt;
  // Two slashes would begin the name of another server.
  if (!next->starts_with('/') || next->starts_with("//"))
    throw bad_request("`next` must be a path that begins with one slash.");
  std::string path;
  for (const char c : *next) {
    // Browsers take a backslash for a slash.
    const bool encoded = c <= ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>';
    path += encoded ? http::percent_encode({&c, 1}) : std::string(1, c);
  }
  return path;
}

RouteResult respond_or_redirect(const Call& call, const std::string& json, http::Headers headers) {
  const auto next = next_path(call);
  if (!next) return json_response(200, json, std::move(headers));
  headers.push_back({"Location", absolute_uri(call, *next)});
  return json_response(302, json, std::move(headers));
}

}  // namespace

std::string roles_json(const User& user) {
  std::string roles;
  json::Writer writer(roles);
  writer.begin_array();
  if (user.admin) writer.string("_admin");
  for (const auto& role : user.roles) writer.string(role);
  writer.end_array();
  return roles;
}

bool is_login(const Call& call) { return call.method() == "POST" && is_session(call); }
bool is_logout(const Call& call) { return call.method() == "DELETE" && is_session(call); }

http::Credentials login_credentials(Call& call) {
  // Anybody may send this body, which is parsed before anything is known about the client.
  if (!call.is_short()) throw Error(413, "too_large", "The body of a login is too large or compressed.");
  next_path(call);  // may throw, like the route after the check of the password
  const Form form = read_form(call);
  return {user_name(form), form("password").value_or("")};
}

// /_session. The service checks the password of a login, and sends the cookie.
RouteResult session(const Context& context, const CallPtr& call) {
  call->allow("GET,POST,DELETE");
  const User& user = call->user();
  if (is_login(*call)) {
    return respond_or_redirect(
        *call,
        fmt::format(R"({{"ok":true,"name":{},"roles":{}}})", json::quoted(user.name), roles_json(user)), {});
  }
  if (is_logout(*call)) {
    return respond_or_redirect(*call, R"({"ok":true})",
                               {{"Set-Cookie", session_cookie_field("", context.config, is_https(*call),
                                                                    context.clock.wall_ms() / 1000)}});
  }
  if (user.name.empty() && call->flag("basic")) throw unauthorized("Please login.");
  const std::string authenticated =
      user.name.empty() ? "" : fmt::format(R"(,"authenticated":"{}")", user.authenticated);
  return json_response(200, fmt::format(R"({{"ok":true,"userCtx":{{"name":{},"roles":{}}},"info":{{)"
                                        R"("authentication_handlers":["cookie",{}{}"default"]{}}}}})",
                                        user.name.empty() ? "null" : json::quoted(user.name),
                                        roles_json(user), context.accounts.uses_tokens() ? "\"jwt\"," : "",
                                        context.accounts.uses_proxies() ? "\"proxy\"," : "", authenticated));
}

}  // namespace divan::api
