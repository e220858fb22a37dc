#include "divan/api/cors.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "divan/http/field_list.h"

namespace divan::api {

const char* const kCorsMethods = "CONNECT,COPY,DELETE,GET,HEAD,OPTIONS,POST,PUT,TRACE";
const char* const kCorsHeaders =
    "accept,accept-language,authorization,content-length,content-range,content-type,destination,expires,"
    "if-match,last-modified,origin,pragma,x-couch-full-commit,x-couch-id,x-couch-persist,"
    "x-couchdb-www-authenticate,x-http-method-override,x-requested-with,x-couchdb-vhost-path";
const char* const kCorsExposedHeaders =
    "accept-ranges,etag,server,x-couch-request-id,x-couch-update-newrev,x-couchdb-body-time";

namespace {

constexpr const char* kSection = "cors";

bool contains(std::string_view list, std::string_view wanted) {
  return std::ranges::any_of(http::split_list(list),
                             [&](std::string_view one) { return http::equal_ignoring_case(one, wanted); });
}

// [chttpd] enable_cors, or its older name, which CouchDB reads, too, and tools for CouchDB still set.
bool is_enabled(const Config& config) {
  const char* section = config.get("chttpd", "enable_cors", "").empty() ? "httpd" : "chttpd";
  return config.get_bool(section, "enable_cors", false);
}

// The origin of the request if it is allowed.
std::optional<std::string_view> allowed_origin(const http::Request& request, const Config& config) {
  const auto origin = request.header("Origin");
  if (!origin || origin->empty() || !is_enabled(config)) return std::nullopt;
  const std::string origins = config.get(kSection, "origins", "");
  if (!contains(origins, "*") && !contains(origins, *origin)) return std::nullopt;
  return origin;
}

http::Headers headers_for(std::string_view origin, const Config& config) {
  // Not `*`, which browsers refuse for requests with credentials.
  http::Headers headers{{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
  if (config.get_bool(kSection, "credentials", false))
    headers.push_back({"Access-Control-Allow-Credentials", "true"});
  return headers;
}

}  // namespace

http::Headers cors_headers(const http::Request& request, const Config& config) {
  const auto origin = allowed_origin(request, config);
  if (!origin) return {};
  auto headers = headers_for(*origin, config);
  const std::string exposed = config.get(kSection, "exposed_headers", kCorsExposedHeaders);
  headers.push_back({"Access-Control-Expose-Headers",
                     fmt::format("content-type, {}", fmt::join(http::split_list(exposed), ", "))});
  return headers;
}

std::optional<http::Response> preflight_response(const http::Request& request, const Config& config) {
  const auto method = request.header("Access-Control-Request-Method");
  if (request.method() != "OPTIONS" || !method) return std::nullopt;
  const auto origin = allowed_origin(request, config);
  if (!origin) return std::nullopt;
  // Methods are case-sensitive.
  const std::string methods = config.get(kSection, "methods", kCorsMethods);
  const auto allowed = http::split_list(methods);
  if (std::ranges::find(allowed, *method) == allowed.end()) return std::nullopt;
  const std::string fields = config.get(kSection, "headers", kCorsHeaders);
  const auto requested = request.header("Access-Control-Request-Headers").value_or("");
  if (!std::ranges::all_of(http::split_list(requested), [&](auto field) { return contains(fields, field); }))
    return std::nullopt;
  http::Response response{.status = 204, .headers = headers_for(*origin, config)};
  response.headers.push_back({"Access-Control-Max-Age", config.get(kSection, "max_age", "600")});
  response.headers.push_back({"Access-Control-Allow-Methods", fmt::format("{}", fmt::join(allowed, ", "))});
  response.headers.push_back({"Access-Control-Allow-Headers", std::string(requested)});
  return response;
}

}  // namespace divan::api
