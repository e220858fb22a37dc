// The rules of `rewrites` in a design document
// (https://docs.couchdb.org/en/stable/api/ddoc/rewrites.html#using-an-array-of-rules-for-rewrites).
//
// A rule {method, from, to, query, formats} applies to requests with this method whose path matches `from`:
// `:name` matches one segment, and `*` at the end all that are left. The values of these variables, and the
// parameters of the request, replace the variables of `to` and `query`. All of them become parameters of the
// new request, apart from `*`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/http/url.h"

namespace divan::api {

/// The most bytes of a path and a query that a request is rewritten to. A rule may repeat what the request
/// contains.
inline constexpr std::size_t kMaxRewrittenBytes = 64 << 10;

/// What a rule is applied to.
struct RewrittenRequest {
  std::string_view method;
  std::vector<std::string> path;  ///< the segments after _rewrite
  std::vector<http::QueryParameter> query;
};

/// The target to which the first rule that applies sends the request: a percent-encoded path relative to the
/// design document, and a query; nullopt if no rule applies. `rules` is a JSON array; elements that are no
/// objects are ignored. Throws rewrite_error (500) if any rule is invalid, or the rules or the target are too
/// large, and insecure_rewrite_rule (500) if `is_secure` is set and a rule has more than two segments `..`.
std::optional<std::string> apply_rewrite_rules(std::string_view rules, const RewrittenRequest& request,
                                               bool is_secure);

/// The absolute path of the target `target`, which is relative to the absolute path `base`, even if it begins
/// with a slash: without empty segments, `.` and, unless they are more than there are segments before them,
/// `..`.
std::string resolve_path(std::string_view base, std::string_view target);

}  // namespace divan::api
