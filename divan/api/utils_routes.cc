// /_utils, the files of the dashboard or of Fauxton, /favicon.ico, and /_openapi.
#include <span>

#include "divan/api/routes.h"
#include "divan/api/static_files.h"
#include "divan/http/accept.h"
#include "divan/http/gzip.h"

namespace divan::api {
namespace {

constexpr std::string_view kFauxtonPolicy =
    "default-src 'self'; img-src 'self' data:; font-src 'self' data:; child-src 'self' blob:; "
    "frame-src https://blog.couchdb.org; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'self'";
constexpr std::string_view kDashboardPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::size_t kMaxFile = 16 << 20;

// Sends the content uncompressed to clients that do not accept gzip.
http::Response embedded_response(const Call& call, const StaticFile& file, http::Headers headers) {
  headers.push_back({"Vary", "Accept-Encoding"});
  headers.push_back({"Content-Type", file.type});
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  if (!http::accepts_gzip(call.list_header("Accept-Encoding")))
    return {.headers = std::move(headers), .body = http::gunzip(file.content, kMaxFile)};
  headers.push_back({"ETag", file.etag});
  if (not_modified(call, file.etag)) return {.status = 304, .headers = std::move(headers)};
  headers.push_back({"Content-Encoding", "gzip"});
  return {.headers = std::move(headers), .body = file.content};
}

http::Response file_response(const Call& call, const StaticFile& file, http::Headers headers) {
  if (file.is_gzip) return embedded_response(call, file, std::move(headers));
  headers.push_back({"ETag", file.etag});
  headers.push_back({"Last-Modified", file.last_modified});
  // If-Modified-Since counts only without If-None-Match (RFC 9110, 13.1.3).
  const bool is_known = !call.header("If-None-Match") &&
                        call.header("If-Modified-Since") == std::string_view(file.last_modified);
  if (is_known || not_modified(call, file.etag)) return {.status = 304, .headers = std::move(headers)};
  headers.push_back({"Content-Type", file.type});
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  return {.headers = std::move(headers), .body = file.content};
}

std::string joined(std::span<const std::string> segments) {
  std::string path;
  for (const auto& segment : segments) path += (path.empty() ? "" : "/") + segment;
  return path;
}

}  // namespace

RouteResult utils(const Context& context, const CallPtr& call) {
  call->allow("GET");
  if (context.web_files == nullptr) {
    throw not_found(
        "The dashboard is not part of this program: it was built without Node.js. Build it with Node.js, or "
        "start the server with --fauxton FOLDER for Fauxton.");
  }
  const auto path = joined(std::span(call->path()).subspan(1));
  const bool is_folder = call->request().path().ends_with('/');
  if (path.empty() && !is_folder) {
    return http::Response{.status = 301, .headers = {{"Location", absolute_uri(*call, "/_utils/")}}};
  }
  const auto* file = context.web_files->find(path.empty() ? "index.html" : path);
  if (file == nullptr || (is_folder && !path.empty())) throw not_found("missing");
  const bool is_dashboard = context.web_files->is_embedded();
  const bool is_constant = is_dashboard && path.starts_with("assets/");
  http::Headers headers{
      {"Cache-Control", is_constant ? "private, max-age=31536000, immutable" : "private, must-revalidate"}};
  if (context.config.get_bool("csp", "utils_enable", true)) {
    auto policy = context.config.get("csp", "utils_header_value", "");
    if (policy.empty()) policy = is_dashboard ? kDashboardPolicy : kFauxtonPolicy;
    headers.push_back({"Content-Security-Policy", std::move(policy)});
  }
  return file_response(*call, *file, std::move(headers));
}

RouteResult favicon(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto* file = context.web_files == nullptr ? nullptr : context.web_files->find("favicon.ico");
  if (file == nullptr) throw not_found("missing");
  return file_response(*call, *file, {{"Cache-Control", "public, max-age=31536000"}});
}

RouteResult openapi(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto* file = context.openapi == nullptr ? nullptr : context.openapi->find("openapi.json");
  if (file == nullptr)
    throw not_found("The description of the API is not part of this program: it was built without Node.js.");
  return file_response(*call, *file, {{"Cache-Control", "private, must-revalidate"}});
}

}  // namespace divan::api
