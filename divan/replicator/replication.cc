#include "divan/replicator/replication.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/catalog.h"
#include "divan/http/message.h"
#include "divan/http/url.h"
#include "divan/selector/selector.h"

namespace divan::replicator {
namespace {

constexpr std::size_t kIdBytes = 16;
constexpr std::int64_t kMostInterval = 86'400'000;

// The length of "http://" or "https://" at the beginning, in any case; 0 if there is none.
std::size_t scheme_size(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    const auto is_equal = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    if (text.size() >= scheme.size() && std::equal(scheme.begin(), scheme.end(), text.begin(),
                                                   [&](char b, char a) { return is_equal(a, b); }))
      return scheme.size();
  }
  return 0;
}

bool is_control_or_space(char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }

// Throws unless the URL, without credentials, is that of a database. The error does not show it: it may have
// a password in a place where none is expected.
void check_url(std::string_view url, std::string_view name) {
  const auto rest = url.substr(scheme_size(url));
  const auto slash = rest.find('/');
  const auto host = rest.substr(0, slash);
  const auto colon = host.ends_with(']') ? std::string_view::npos : host.rfind(':');
  const auto port = colon == std::string_view::npos ? std::string_view() : host.substr(colon + 1);
  const bool is_valid = slash != std::string_view::npos && !host.empty() &&
                        rest.find_first_of("@?#") == std::string_view::npos &&
                        std::ranges::none_of(url, is_control_or_space) &&
                        port.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_valid)
    throw bad_request(
        fmt::format("`{}` must be the URL of a database, without a query; special characters of "
                    "credentials are percent-encoded.",
                    name));
}

std::string string_of(std::string_view json, std::string_view name) {
  const auto text = json::string_value(json);
  if (!text) throw bad_request(fmt::format("`{}` must be a string.", name));
  return *text;
}

bool bool_of(std::string_view json, std::string_view name) {
  if (json != "true" && json != "false") throw bad_request(fmt::format("`{}` must be a boolean.", name));
  return json == "true";
}

// Moves the credentials of "http://user:password@host/db" to the endpoint's members.
void take_credentials(Endpoint& endpoint) {
  const auto begin = scheme_size(endpoint.url);
  const auto end = endpoint.url.find_first_of("/?#", begin);
  const auto at = endpoint.url.rfind('@', end == std::string::npos ? end : end - 1);
  if (at == std::string::npos || at < begin) return;
  const std::string credentials = endpoint.url.substr(begin, at - begin);
  const auto colon = credentials.find(':');
  endpoint.user = http::percent_decode(credentials.substr(0, colon));
  if (colon != std::string::npos) endpoint.password = http::percent_decode(credentials.substr(colon + 1));
  endpoint.url.erase(begin, at + 1 - begin);
}

void parse_auth(Endpoint& endpoint, std::string_view json, std::string_view name) {
  const auto basic = json::member(json, "basic");
  if (!basic) throw bad_request(fmt::format("`{}.auth` must have the member `basic`.", name));
  endpoint.user = string_of(json::member(*basic, "username").value_or(""), "username");
  endpoint.password = string_of(json::member(*basic, "password").value_or(""), "password");
}

// A token: RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

void check_header(std::string_view name, std::string_view value) {
  // The HTTP client sets these, or they change what a request means.
  for (const std::string_view own :
       {"content-length", "transfer-encoding", "host", "connection", "expect", "content-type", "accept",
        "accept-encoding", "range", "if-match", "if-none-match", "x-http-method-override"}) {
    if (http::equal_ignoring_case(name, own))
      throw bad_request(fmt::format("The header `{}` cannot be given.", own));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (!is_token(name) || value.empty() || std::ranges::any_of(value, is_control))
    throw bad_request(fmt::format("Invalid header `{}`.", name));
}

Endpoint parse_endpoint(std::string_view json, std::string_view name, std::string proxy) {
  Endpoint endpoint;
  endpoint.proxy = std::move(proxy);
  std::string text;
  if (json.starts_with('{')) {
    text = string_of(json::member(json, "url").value_or(""), fmt::format("{}.url", name));
    if (const auto headers = json::member(json, "headers")) {
      const bool is_object =
          json::for_each_member(*headers, [&](std::string_view raw_name, std::string_view value) {
            endpoint.headers.emplace_back(json::unescape(raw_name), string_of(value, "headers"));
            check_header(endpoint.headers.back().first, endpoint.headers.back().second);
            return true;
          });
      if (!is_object) throw bad_request(fmt::format("`{}.headers` must be an object.", name));
    }
  } else {
    text = string_of(json, name);
  }
  if (text.empty()) throw bad_request(fmt::format("`{}` must not be empty.", name));
  if (scheme_size(text) == 0) {
    docs::check_database_name(text);
    endpoint.database = text;
    return endpoint;
  }
  endpoint.url = text;
  take_credentials(endpoint);
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  check_url(endpoint.url, name);
  if (const auto auth = json.starts_with('{') ? json::member(json, "auth") : std::nullopt)
    parse_auth(endpoint, *auth, name);
  return endpoint;
}

std::vector<std::string> parse_ids(std::string_view json) {
  std::vector<std::string> ids;
  const bool is_array = json::for_each_element(json, [&](std::string_view id) {
    ids.push_back(string_of(id, "doc_ids"));
    return true;
  });
  if (!is_array) throw bad_request("`doc_ids` must be an array of strings.");
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string object_of(std::string_view json, std::string_view name) {
  if (!json.starts_with('{')) throw bad_request(fmt::format("`{}` must be an object.", name));
  return std::string(json);
}

// They are parameters of the request for changes.
void check_query_params(std::string_view json) {
  json::for_each_member(json, [](std::string_view raw_name, std::string_view) {
    const auto name = json::unescape(raw_name);
    for (const std::string_view own : {"since", "limit", "style", "feed", "heartbeat", "timeout", "filter",
                                       "descending", "include_docs", "attachments", "last-event-id"}) {
      if (name == own) throw bad_request(fmt::format("`query_params` must not have `{}`.", own));
    }
    return true;
  });
}

std::string proxy_of(std::string_view json, std::string_view name) {
  if (json == "null") return {};
  const auto url = string_of(json, name);
  for (const std::string_view scheme : {"http://", "https://", "socks5://", "socks5h://"}) {
    if (url.starts_with(scheme) && url.size() > scheme.size()) return url;
  }
  throw bad_request(fmt::format("`{}` must be a URL with the scheme http, https, socks5 or socks5h.", name));
}

void parse_member(Replication& replication, std::string_view name, std::string_view value) {
  if (name == "source" || name == "target") {
    auto& endpoint = name == "source" ? replication.source : replication.target;
    endpoint = parse_endpoint(value, name, std::move(endpoint.proxy));
  } else if (name == "source_proxy" || name == "target_proxy") {
    (name == "source_proxy" ? replication.source : replication.target).proxy = proxy_of(value, name);
  } else if (name == "proxy") {
    replication.source.proxy = replication.target.proxy = proxy_of(value, name);
  } else if (name == "continuous") {
    replication.continuous = bool_of(value, name);
  } else if (name == "create_target") {
    replication.create_target = bool_of(value, name);
  } else if (name == "create_target_params") {
    replication.create_target_params = object_of(value, name);
  } else if (name == "doc_ids" && value != "null") {
    replication.filter.doc_ids = parse_ids(value);
    replication.filter.has_doc_ids = true;
  } else if (name == "selector" && value != "null") {
    replication.filter.selector = object_of(value, name);
    selector::Selector::parse(*replication.filter.selector);
  } else if (name == "filter" && value != "null") {
    replication.filter.filter = string_of(value, name);
  } else if (name == "query_params" && value != "null") {
    replication.filter.query_params = object_of(value, name);
    check_query_params(replication.filter.query_params);
  } else if (name == "since_seq" && value != "null") {
    const auto text = json::string_value(value);
    if (!text && !json::int_value(value)) throw bad_request("`since_seq` must be a sequence.");
    replication.since_seq = text ? *text : std::string(value);
  } else if (name == "use_checkpoints") {
    replication.use_checkpoints = bool_of(value, name);
  } else if (name == "winning_revs_only") {
    replication.winning_revs_only = bool_of(value, name);
  } else if (name == "checkpoint_interval") {
    const auto ms = json::int_value(value);
    if (!ms || *ms < 1 || *ms > kMostInterval)
      throw bad_request("`checkpoint_interval` must be a number of milliseconds.");
    replication.checkpoint_interval = std::chrono::milliseconds(*ms);
  } else if (name == "user_ctx") {
    if (const auto user = json::member(value, "name"))
      replication.user.name = json::string_value(*user).value_or("");
    if (const auto roles = json::member(value, "roles")) replication.user.roles = std::string(*roles);
  }
}

void append_endpoint(json::Writer& writer, const Endpoint& endpoint) {
  writer.begin_array().string(endpoint.shown()).string(endpoint.user);
  auto headers = endpoint.headers;
  std::ranges::sort(headers);
  for (const auto& [name, value] : headers) writer.string(name).string(value);
  writer.end_array();
}

}  // namespace

std::string Endpoint::shown() const { return is_remote() ? url + "/" : database; }

std::string Endpoint::shown_proxy() const {
  const auto begin = proxy.find("://") == std::string::npos ? 0 : proxy.find("://") + 3;
  const auto at = proxy.rfind('@');
  return at == std::string::npos || at < begin ? proxy : proxy.substr(0, begin) + proxy.substr(at + 1);
}

Replication Replication::parse(std::string_view json) {
  Replication replication;
  bool has_source = false, has_target = false;
  const bool is_object = json::for_each_member(json, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    has_source |= name == "source";
    has_target |= name == "target";
    parse_member(replication, name, value);
    return true;
  });
  if (!is_object) throw bad_request("A replication must be an object.");
  if (!has_source) throw bad_request("`source` is missing.");
  if (!has_target) throw bad_request("`target` is missing.");
  if (!replication.source.is_remote() && replication.source.database == replication.target.database)
    throw bad_request("`source` and `target` are the same database.");
  const auto& filter = replication.filter;
  if (int{filter.has_doc_ids} + int{filter.selector.has_value()} + int{!filter.filter.empty()} > 1)
    throw bad_request("`doc_ids`, `selector` and `filter` are mutually exclusive.");
  return replication;
}

std::string Replication::base_id(std::string_view server_uuid) const {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().string(server_uuid);
  append_endpoint(writer, source);
  append_endpoint(writer, target);
  writer.boolean(winning_revs_only);
  if (filter.has_doc_ids) {
    writer.begin_array();
    for (const auto& id : filter.doc_ids) writer.string(id);
    writer.end_array();
  } else if (filter.selector) {
    writer.raw(*filter.selector);
  } else if (!filter.filter.empty()) {
    writer.string(filter.filter).raw(filter.query_params);
  }
  if (!realm.empty()) writer.string(realm);
  writer.end_array();
  return to_hex(sha256(text, kIdBytes));
}

std::string Replication::id(std::string_view server_uuid) const {
  std::string id = base_id(server_uuid);
  if (continuous) id += "+continuous";
  if (create_target) id += "+create_target";
  return id;
}

std::string_view base_of(std::string_view id) { return id.substr(0, id.find('+')); }

}  // namespace divan::replicator
