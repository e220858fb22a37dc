#include "divan/api/call.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/http/etag.h"
#include "divan/http/gzip.h"

namespace divan::api {
namespace {

// Returns true if an empty segment below this first segment is an empty name, which the route rejects.
// (CouchDB has no such paths.) `DELETE /_jobs//a` must not mean `DELETE /_jobs/a`.
bool preserves_empty_segments(std::string_view first) {
  return first == "_events" || first == "_jobs" || first == "_workers";
}

// The method as seen by routes. Clients that can only POST name another one in a header field, as in CouchDB.
std::string method_of(const http::Request& request) {
  constexpr std::array<std::string_view, 8> kNamed = {"GET",    "HEAD",  "POST",    "PUT",
                                                      "DELETE", "TRACE", "CONNECT", "COPY"};
  std::string_view method = request.method();
  const auto named = request.header("X-HTTP-Method-Override");
  if (method == "POST" && named && std::ranges::find(kNamed, *named) != kNamed.end()) method = *named;
  return std::string(method == "HEAD" ? "GET" : method);
}

}  // namespace

// As in CouchDB, empty segments are dropped: "//db//a/" is "/db/a".
std::vector<std::string> decoded_path(const http::Request& request) {
  std::vector<std::string> segments;
  for (std::string_view path = request.path(); !path.empty();) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0 || (!segments.empty() && preserves_empty_segments(segments.front()))) {
      segments.push_back(http::percent_decode(path.substr(0, slash)));
      if (!is_utf8(segments.back())) throw bad_request("The path is not UTF-8.");
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return segments;
}

void split_design_id(std::vector<std::string>& path) {
  constexpr std::string_view kPrefix = docs::kDesignPrefix;
  if (path.size() < 2 || path[1].size() <= kPrefix.size() || !path[1].starts_with(kPrefix)) return;
  path.insert(path.begin() + 2, path[1].substr(kPrefix.size()));
  path[1] = kPrefix.substr(0, kPrefix.size() - 1);
}

std::string joined_path(const std::vector<std::string>& path, std::size_t begin) {
  std::string joined;
  for (std::size_t i = begin; i < path.size(); ++i) joined += (i > begin ? "/" : "") + path[i];
  return joined;
}

bool is_database(std::string_view segment) {
  return (!segment.starts_with('_') && segment != kFavicon) || segment == "_users" ||
         segment == "_replicator" || segment == "_global_changes";
}

Call::Call(std::shared_ptr<http::Exchange> exchange, ThreadPool& workers)
    : exchange_(std::move(exchange)), executor_(*exchange_, workers) {
  parse_request();
}

Call::Call(const Call& call, http::Request rewritten)
    : exchange_(call.exchange_),
      executor_(call.executor_),
      max_body_(call.max_body_),
      user_(call.user_),
      has_ambient_credentials_(call.has_ambient_credentials_),
      rewritten_(std::move(rewritten)),
      rewrites_(call.rewrites_ + 1) {
  parse_request();
}

void Call::parse_request() {
  method_ = method_of(request());
  path_ = decoded_path(request());
  params_ = http::parse_query(request().query());
  for (const auto& param : params_) {
    if (!is_utf8(param.name) || !is_utf8(param.value)) throw bad_request("The query is not UTF-8.");
  }
  if (!path_.empty() && is_database(path_[0])) split_design_id(path_);
}

void Call::enter_partition() {
  std::string partition = path_[2];
  const auto named = param("partition");
  if (named && *named != partition) throw bad_request("Conflicting value for `partition` in query string");
  path_.erase(path_.begin() + 1, path_.begin() + 3);
  if (!named) params_.push_back({"partition", std::move(partition)});
  split_design_id(path_);
}

std::optional<std::string> Call::param(std::string_view name) const {
  for (auto it = params_.rbegin(); it != params_.rend(); ++it) {
    if (it->name == name) return it->value;
  }
  return std::nullopt;
}

bool Call::flag(std::string_view name, bool fallback) const {
  const auto value = param(name);
  if (!value) return fallback;
  if (*value == "true") return true;
  if (*value == "false") return false;
  throw Error(400, "query_parse_error", fmt::format("Invalid boolean parameter: \"{}\"", *value));
}

std::optional<std::uint64_t> Call::count(std::string_view name) const {
  const auto value = param(name);
  if (!value) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size()) {
    throw Error(400, "query_parse_error", fmt::format("Invalid value for integer: \"{}\"", *value));
  }
  return number;
}

std::optional<std::string> Call::text(std::string_view name) const {
  auto value = param(name);
  if (!value || !value->starts_with('"')) return value;
  auto text = json::string_value(json::compact(*value));
  if (!text) throw bad_request(fmt::format("Parameter `{}` must be a string.", name));
  return text;
}

const std::string& Call::body() {
  if (decoded_body_) return *decoded_body_;
  if (has_streamed_body()) throw internal_error("The request's body is streamed.");
  const auto& body = request().body();
  if (!http::equal_ignoring_case(header("Content-Encoding").value_or(""), "gzip")) return body;
  return decoded_body_.emplace(http::gunzip(body, max_body_));
}

std::optional<std::uint64_t> content_length(const http::Request& request) {
  const auto field = request.header("Content-Length").value_or("");
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), length);
  return !field.empty() && error == std::errc() ? std::optional(length) : std::nullopt;
}

std::string Call::json_body() {
  const auto type = header("Content-Type");
  // CouchDB requires it for POST only; curl's -d sends another type by default.
  if (method_ == "POST" && type && !type->empty() && !type->starts_with("application/json")) {
    throw Error(415, "bad_content_type", "Content-Type must be application/json");
  }
  return json::compact(body());
}

void Call::require_role(std::string_view role, std::string_view what) const {
  if (user_.admin || user_.has_role(role)) return;
  throw unauthorized(fmt::format("{} are for server admins and users with the role `{}`.", what, role));
}

Error Call::database_admins_only() const {
  const char* const reason = "You are not a db or server admin.";
  return user_.name.empty() ? unauthorized(reason) : forbidden(reason);
}

void Call::allow(std::string_view allowed) const {
  std::string all;
  while (!allowed.empty()) {
    const std::size_t end = std::min(allowed.find(','), allowed.size());
    const std::string_view method = allowed.substr(0, end);
    if (method == method_) return;
    all += all.empty() ? "" : ",";
    all += method;
    if (method == "GET") all += ",HEAD";
    allowed.remove_prefix(std::min(end + 1, allowed.size()));
  }
  throw MethodNotAllowed(all);
}

std::optional<http::Response> not_modified(const Call& call, const std::string& etag) {
  const std::string known = call.list_header("If-None-Match");
  if (call.method() != "GET" || !http::if_none_match(known, etag)) return std::nullopt;
  http::Response unchanged;
  unchanged.status = 304;
  unchanged.headers.push_back({"ETag", etag});
  return unchanged;
}

bool is_https(const Call& call) {
  return call.exchange()->is_tls() || call.header("X-Forwarded-Ssl") == "on" ||
         call.header("X-Forwarded-Proto") == "https";
}

std::string absolute_uri(const Call& call, std::string_view path) {
  const auto host = call.header("X-Forwarded-Host").value_or(call.header("Host").value_or(""));
  if (host.empty()) return std::string(path);
  return fmt::format("{}://{}{}", is_https(call) ? "https" : "http", host, path);
}

void check_connected(const http::Exchange& exchange) {
  if (exchange.closed()) throw ClientClosed();
}

docs::Checkpoint checkpoint_of(const Call& call) {
  return [exchange = call.exchange()] { check_connected(*exchange); };
}

http::Response json_response(int status, std::string json, http::Headers headers) {
  http::Response response;
  response.status = status;
  response.headers = std::move(headers);
  response.headers.push_back({"Content-Type", "application/json"});
  const bool has_own = std::any_of(response.headers.begin(), response.headers.end(),
                                   [](const auto& header) { return header.name == "Cache-Control"; });
  if (!has_own) response.headers.push_back({"Cache-Control", "must-revalidate"});
  response.body = std::move(json);
  if (!response.body.ends_with('\n')) response.body += '\n';
  return response;
}

http::Response ok_response(int status) { return json_response(status, R"({"ok":true})"); }

}  // namespace divan::api
