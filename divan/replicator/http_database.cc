#include "divan/replicator/http_database.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/http/message.h"
#include "divan/replicator/peer.h"
#include "divan/replicator/responses.h"

namespace divan::replicator {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{250};
// Of another server's error.
constexpr std::size_t kMaxReasonBytes = 500;
constexpr std::string_view kSessionCookie = "AuthSession=";
constexpr int kMaxRedirects = 5;
// Of a session, if its cookie does not say it: CouchDB's default.
constexpr std::int64_t kSessionSeconds = 600;

bool is_temporary(int status) { return status == 429 || (status >= 500 && status != 501); }

// The scheme, host and port of a URL.
std::string_view origin_of(std::string_view url) {
  const auto host = url.find("://") + 3;
  return url.substr(0, std::min(url.find('/', host), url.size()));
}

// Returns true if the credentials for the first one may be sent to the second one, too: if they are the same,
// or the second one is the first one with TLS.
bool may_have_credentials_of(std::string_view first, std::string_view second) {
  const auto from = origin_of(first), to = origin_of(second);
  if (http::equal_ignoring_case(from, to)) return true;
  return from.starts_with("http://") && to.starts_with("https://") &&
         http::equal_ignoring_case(from.substr(7), to.substr(8));
}

// libcurl adds those of the request to the URL of a redirect.
void remove_credentials(std::string& url) {
  const auto host = url.find("://") + 3;
  const auto end = origin_of(url).rfind('@');
  if (end != std::string_view::npos) url.erase(host, end + 1 - host);
}

// From a cookie's attributes.
std::chrono::seconds max_age_of(std::string_view cookie) {
  constexpr std::string_view name = "max-age=";
  std::int64_t seconds = kSessionSeconds;
  for (auto end = cookie.find(';'); end != std::string_view::npos; end = cookie.find(';')) {
    cookie.remove_prefix(end + 1);
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (http::equal_ignoring_case(cookie.substr(0, name.size()), name))
      std::from_chars(cookie.data() + name.size(), cookie.data() + cookie.size(), seconds);
  }
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, kSessionSeconds));
}

}  // namespace

HttpDatabase::HttpDatabase(Endpoint endpoint, const RemoteOptions& options, const Clock& clock,
                           const std::atomic<bool>& stopped)
    : endpoint_(std::move(endpoint)),
      shown_(endpoint_.shown()),
      options_(options),
      clock_(clock),
      stopped_(stopped) {}

http_client::Request HttpDatabase::request(std::string method, std::string_view path) const {
  http_client::Request request{.method = std::move(method),
                               .url = endpoint_.url,
                               .headers = endpoint_.headers,
                               .idle_timeout = options_.idle_timeout,
                               .sender = this};
  request.url += path;
  if (session_.empty()) {
    request.user = endpoint_.user;
    request.password = endpoint_.password;
  } else {
    request.headers.emplace_back("Cookie", session_);
  }
  return request;
}

http_client::Response HttpDatabase::send_once(const http_client::Request& request) const {
  return http_client::send(request, options_.http, stopped_);
}

http_client::Response HttpDatabase::repeat(const std::function<http_client::Response()>& send) {
  milliseconds duration = kFirstPause;
  for (int retry = 0;; ++retry) {
    try {
      connect();
      auto response = send();
      if (response.status == 401 && !session_.empty()) {
        log_in();
        response = send();
      }
      if (!is_temporary(response.status) || retry >= options_.retries) return response;
    } catch (const http_client::ResponseTooLarge&) { throw; } catch (const Error& error) {
      // After a timeout, others should have their turns: the job is tried again later.
      if (stopped_ || error.status() < 500 || error.status() == 504 || retry >= options_.retries) throw;
    }
    pause(duration);
    duration *= 2;
  }
}

http_client::Response HttpDatabase::send(const std::string& method, const std::string& path,
                                         const std::string& body) {
  return repeat([&] {
    auto made = request(method, path);
    made.body = body;
    return send_once(made);
  });
}

std::unique_ptr<http_client::Stream> HttpDatabase::open(const std::string& path) {
  connect();
  auto stream = http_client::open(request("GET", path), options_.http, stopped_);
  if (stream->status() == 401 && !session_.empty()) {
    log_in();
    stream = http_client::open(request("GET", path), options_.http, stopped_);
  }
  return stream;
}

void HttpDatabase::connect() {
  if (!is_connected_) {
    follow_redirects();
    if (!endpoint_.user.empty()) authenticate();
    is_connected_ = true;
  } else if (!session_.empty() && clock_.now() >= renew_at_) {
    log_in();
  }
}

void HttpDatabase::follow_redirects() {
  for (int count = 0;; ++count) {
    const auto response = send_once(request("GET", ""));
    auto location = response.location;
    if (response.status < 300 || response.status >= 400 || location.empty()) return;
    location.resize(std::min(location.find_first_of("?#"), location.size()));
    while (location.ends_with('/')) location.pop_back();
    const bool is_http = location.starts_with("http://") || location.starts_with("https://");
    if (count == kMaxRedirects || !is_http) throw bad_response("redirects too often, or to an invalid URL");
    remove_credentials(location);
    if (!may_have_credentials_of(endpoint_.url, location)) {
      endpoint_.user.clear();
      endpoint_.headers.clear();
    }
    endpoint_.url = std::move(location);
  }
}

// Finds out what the server makes of Basic credentials: one that ignores them would take the replication for
// anonymous.
void HttpDatabase::authenticate() {
  const auto response = send_once(session_request("GET"));
  if (is_temporary(response.status)) check(response);
  if (response.status != 200 && response.status != 401) return;  // no server with sessions
  std::string_view name;
  std::string json;
  try {
    json = json::compact(response.body);
    name = json::member(json::member(json, "userCtx").value_or(""), "name").value_or("");
  } catch (const Error&) {
    if (response.status == 200) return;
  }
  if (response.status != 200 || !json::string_value(name)) log_in();
}

http_client::Request HttpDatabase::session_request(std::string method) const {
  auto made = request(std::move(method), "");
  made.url = endpoint_.url.substr(0, endpoint_.url.rfind('/')) + "/_session";
  return made;
}

// Begins a session. After an error there must be no request without one, so the next one begins with
// connect().
void HttpDatabase::log_in() {
  is_connected_ = false;
  session_.clear();
  auto made = session_request("POST");
  made.user.clear();
  json::Writer(made.body)
      .begin_object()
      .key("name")
      .string(endpoint_.user)
      .key("password")
      .string(endpoint_.password)
      .end_object();
  const auto response = send_once(made);
  if (is_temporary(response.status)) check(response);
  for (const auto& cookie : response.cookies) {
    if (!cookie.starts_with(kSessionCookie)) continue;
    session_ = cookie.substr(0, cookie.find(';'));
    renew_at_ = clock_.now() + Duration(max_age_of(cookie)) / 2;
  }
  if (response.status != 200 || session_.empty())
    throw ServerError(401, "unauthorized", fmt::format("{}: The credentials are not accepted.", shown_));
  is_connected_ = true;
}

void HttpDatabase::pause(milliseconds duration) const {
  for (milliseconds slept{0}; slept < duration && !stopped_; slept += kFirstPause)
    std::this_thread::sleep_for(kFirstPause);
}

void HttpDatabase::check(const http_client::Response& response) const {
  if (response.status >= 200 && response.status < 300) return;
  std::string name = "http_error", reason = "no reason";
  try {
    const auto json = json::compact(response.body);
    name = json::string_value(json::member(json, "error").value_or("")).value_or(name);
    reason = json::string_value(json::member(json, "reason").value_or("")).value_or(reason);
  } catch (const Error&) {
    // A proxy's page, for example.
  }
  const bool is_error = response.status >= 400 && response.status < 600;
  throw ServerError(is_error ? response.status : 502, std::string(shown_text(name, kMaxReasonBytes)),
                    fmt::format("{}: {} ({})", shown_, shown_text(reason, kMaxReasonBytes), response.status));
}

std::string HttpDatabase::checked(const http_client::Response& response) const {
  check(response);
  try {
    return json::compact(response.body);
  } catch (const Error&) { throw bad_response("is not JSON"); }
}

}  // namespace divan::replicator
