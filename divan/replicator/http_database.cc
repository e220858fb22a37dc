#include "divan/replicator/http_database.h"

#include <fmt/core.h>

#include <thread>
#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/replicator/peer.h"
#include "divan/replicator/responses.h"

namespace divan::replicator {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{250};
// Of another server's error.
constexpr std::size_t kMaxReasonBytes = 500;
constexpr std::string_view kSessionCookie = "AuthSession=";

}  // namespace

HttpDatabase::HttpDatabase(Endpoint endpoint, const RemoteOptions& options, const std::atomic<bool>& stopped)
    : endpoint_(std::move(endpoint)), options_(options), stopped_(stopped) {}

HttpRequest HttpDatabase::request(std::string method, std::string_view path) const {
  HttpRequest request{.method = std::move(method),
                      .url = endpoint_.url,
                      .headers = endpoint_.headers,
                      .idle_timeout = options_.idle_timeout};
  request.url += path;
  if (session_.empty()) {
    request.user = endpoint_.user;
    request.password = endpoint_.password;
  } else {
    request.headers.emplace_back("Cookie", session_);
  }
  return request;
}

HttpResponse HttpDatabase::send_once(const HttpRequest& request) const {
  return replicator::send(request, options_.http, stopped_);
}

HttpResponse HttpDatabase::repeat(const std::function<HttpResponse()>& send) {
  milliseconds duration = kFirstPause;
  bool may_log_in = true;
  for (int retry = 0;; ++retry) {
    try {
      auto response = send();
      if (response.status == 401 && std::exchange(may_log_in, false) && log_in()) response = send();
      const bool is_temporary = response.status == 429 || (response.status >= 500 && response.status != 501);
      if (!is_temporary || retry >= options_.retries) return response;
    } catch (const ResponseTooLarge&) { throw; } catch (const Error& error) {
      // After a timeout, others should have their turns: the job is tried again later.
      if (stopped_ || error.status() == 504 || retry >= options_.retries) throw;
    }
    pause(duration);
    duration *= 2;
  }
}

HttpResponse HttpDatabase::send(const std::string& method, const std::string& path, const std::string& body) {
  return repeat([&] {
    auto made = request(method, path);
    made.body = body;
    return send_once(made);
  });
}

std::unique_ptr<HttpStream> HttpDatabase::open(const std::string& path) {
  auto stream = replicator::open(request("GET", path), options_.http, stopped_);
  if (stream->status() == 401 && log_in())
    stream = replicator::open(request("GET", path), options_.http, stopped_);
  return stream;
}

// Returns whether there is a new session.
bool HttpDatabase::log_in() {
  if (endpoint_.user.empty()) return false;
  session_.clear();
  HttpRequest request{.method = "POST",
                      .url = endpoint_.url.substr(0, endpoint_.url.rfind('/')) + "/_session",
                      .headers = endpoint_.headers,
                      .idle_timeout = options_.idle_timeout};
  json::Writer(request.body)
      .begin_object()
      .key("name")
      .string(endpoint_.user)
      .key("password")
      .string(endpoint_.password)
      .end_object();
  const auto response = send_once(request);
  if (response.status != 200) return false;
  for (const auto& cookie : response.cookies) {
    if (cookie.starts_with(kSessionCookie)) session_ = cookie;
  }
  return !session_.empty();
}

void HttpDatabase::pause(milliseconds duration) const {
  for (milliseconds slept{0}; slept < duration && !stopped_; slept += kFirstPause)
    std::this_thread::sleep_for(kFirstPause);
}

void HttpDatabase::check(const HttpResponse& response) const {
  if (response.status >= 200 && response.status < 300) return;
  std::string name = "http_error", reason = "no reason";
  try {
    const auto json = json::compact(response.body);
    name = json::string_value(json::member(json, "error").value_or("")).value_or(name);
    reason = json::string_value(json::member(json, "reason").value_or("")).value_or(reason);
  } catch (const Error&) {
    // A proxy's page, for example.
  }
  throw Error(
      response.status, std::string(shown_text(name, kMaxReasonBytes)),
      fmt::format("{}: {} ({})", endpoint_.shown(), shown_text(reason, kMaxReasonBytes), response.status));
}

std::string HttpDatabase::checked(const HttpResponse& response) const {
  check(response);
  try {
    return json::compact(response.body);
  } catch (const Error&) { throw bad_response("is not JSON"); }
}

}  // namespace divan::replicator
