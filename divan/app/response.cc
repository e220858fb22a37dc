#include "divan/app/response.h"

#include <fmt/format.h>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::app {

std::optional<std::string> fetch(const QueryOptions& options, http::Client& client,
                                 const std::string& target) {
  const std::string body = send_request(client, "GET", target);
  if (!options.json) return json::compact(body);
  fmt::print("{}{}", body, body.ends_with('\n') ? "" : "\n");
  return std::nullopt;
}

std::string member_text(std::string_view object, std::string_view name) {
  const auto token = json::member(object, name);
  if (!token || *token == "null") return "";
  return json::string_value(*token).value_or(std::string(*token));
}

std::int64_t member_number(std::string_view object, std::string_view name) {
  const auto token = json::member(object, name);
  return token ? json::int_value(*token).value_or(0) : 0;
}

std::string_view required_member(std::string_view object, std::string_view name) {
  const auto value = json::member(object, name);
  if (!value) throw Error(502, "bad_response", fmt::format("The server's response has no `{}`.", name));
  return *value;
}

void follow(http::Client& client, const std::string& target,
            const std::function<bool(std::string_view row)>& show) {
  bool enough = false;
  const auto response = client.stream_lines("GET", target, [&](std::string_view line) {
    if (line.empty()) return true;  // a heartbeat
    const std::string row = json::compact(line);
    // The feed's last line, from which it can be resumed.
    if (json::member(row, "last_seq")) return true;
    enough = !show(row);
    return !enough;
  });
  check_response(response);
  if (!enough) throw Error(503, "connection_lost", "The server has ended the feed.");
}

}  // namespace divan::app
