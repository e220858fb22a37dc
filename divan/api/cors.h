// Cross-origin resource sharing: pages of other origins may use this server, as CouchDB's settings say
// ([chttpd] enable_cors and the section [cors]). https://fetch.spec.whatwg.org/#http-cors-protocol
#pragma once

#include <optional>

#include "divan/base/config.h"
#include "divan/http/message.h"

namespace divan::api {

/// CouchDB's defaults of [cors] methods, headers and exposed_headers, separated by commas.
extern const char* const kCorsMethods;
extern const char* const kCorsHeaders;
extern const char* const kCorsExposedHeaders;

/// The fields of the response, whatever it is, by which a browser lets a page read it. Empty unless the
/// request names an origin that is allowed.
http::Headers cors_headers(const http::Request& request, const Config& config);

/// The response to a preflight request, by which a browser asks whether a page may send another request.
/// Nullopt if the request is not one, or if its origin, method or header fields are not allowed.
std::optional<http::Response> preflight_response(const http::Request& request, const Config& config);

}  // namespace divan::api
