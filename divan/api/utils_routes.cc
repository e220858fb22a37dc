// /_utils, Fauxton's files, and /favicon.ico.
#include <span>

#include "divan/api/routes.h"
#include "divan/api/static_files.h"

namespace divan::api {
namespace {

http::Response file_response(const Call& call, const StaticFile& file, http::Headers headers) {
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
  if (context.fauxton == nullptr) {
    throw not_found(
        "Fauxton is not installed: it is in the npm package `fauxton`, in the folder dist/release. Start the "
        "server with "
        "--fauxton FOLDER.");
  }
  const auto path = joined(std::span(call->path()).subspan(1));
  const bool is_folder = call->request().path().ends_with('/');
  if (path.empty() && !is_folder) {
    return http::Response{.status = 301, .headers = {{"Location", absolute_uri(*call, "/_utils/")}}};
  }
  const auto* file = context.fauxton->find(path.empty() ? "index.html" : path);
  if (file == nullptr || (is_folder && !path.empty())) throw not_found("missing");
  http::Headers headers{{"Cache-Control", "private, must-revalidate"}};
  if (context.config.get_bool("csp", "utils_enable", true))
    headers.push_back(
        {"Content-Security-Policy", context.config.get("csp", "utils_header_value", kUtilsPolicy)});
  return file_response(*call, *file, std::move(headers));
}

RouteResult favicon(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto* file = context.fauxton == nullptr ? nullptr : context.fauxton->find("favicon.ico");
  if (file == nullptr) throw not_found("missing");
  return file_response(*call, *file, {{"Cache-Control", "public, max-age=31536000"}});
}

}  // namespace divan::api
