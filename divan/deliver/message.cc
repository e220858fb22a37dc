#include "divan/deliver/message.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/deliver/signature.h"
#include "divan/http/message.h"
#include "divan/http/url.h"
#include "divan/http_client/url.h"
#include "divan/jobs/periodic.h"

namespace divan::deliver {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kLockField = "divan-lock";
constexpr const char* kUserAgent = "User-Agent";
constexpr milliseconds kShortestTimeout{1};
constexpr std::size_t kIdBytes = 16;

}  // namespace

std::string message_id(const jobs::AcceptedJob& accepted) {
  const auto& job = accepted.job;
  // The number of the run's first attempt: each further one follows a failed or a lost one.
  const auto first = job.attempt - job.failures - job.lost;
  // Each run of a periodic job counts its own attempts.
  const auto previous_run = jobs::is_periodic(job) ? job.finished_at : 0;
  Digest digest(Digest::Algorithm::sha256);
  digest.add(fmt::format("{}:{}{}:{}{}:{}:{}:", job.type.size(), job.type, job.id.size(), job.id,
                         job.added_at, first, previous_run));
  digest.add(accepted.data);
  return "msg_" + to_hex(digest.value().substr(0, kIdBytes));
}

http_client::Request make_request(jobs::AcceptedJob& accepted, const Settings& settings,
                                  std::int64_t now_ms) {
  const auto& job = accepted.job;
  http_client::Request request{.method = settings.method, .url = settings.url};
  request.shown_url = settings.host;
  request.timeout = settings.timeout;
  // An attempt that has reached its deadline does not own the job any more.
  if (job.deadline != 0)
    request.timeout = std::clamp(milliseconds(job.deadline - now_ms), kShortestTimeout, request.timeout);
  const auto id = message_id(accepted);
  request.body = std::move(accepted.data);
  const auto timestamp = now_ms / 1000;
  request.headers = {{"webhook-id", id},
                     {"webhook-timestamp", std::to_string(timestamp)},
                     {"divan-type", http::percent_encode(job.type)},
                     {"divan-id", http::percent_encode(job.id)},
                     {"divan-attempt", std::to_string(job.attempt)},
                     {"divan-epoch", std::to_string(job.epoch)},
                     {std::string(kLockField), job.lock}};
  if (!settings.secrets.empty())
    request.headers.emplace_back("webhook-signature", sign(settings.secrets, id, timestamp, request.body));
  bool has_user_agent = false;
  for (const auto& [name, value] : settings.headers) {
    has_user_agent = has_user_agent || http::equal_ignoring_case(name, kUserAgent);
    if (http::equal_ignoring_case(name, "content-type")) {
      request.content_type = value;
    } else {
      request.headers.emplace_back(name, value);
    }
  }
  if (!has_user_agent) request.headers.emplace_back(kUserAgent, "Divan");
  return request;
}

http_client::Request redirected(http_client::Request request, const Settings& settings, std::string url) {
  url.resize(std::min(url.find('#'), url.size()));
  const auto target = http_client::parse_url(url);
  if (target.has_user) throw bad_request("It has a user name.");
  const bool is_same_origin = target.origin == http_client::parse_url(request.url).origin;
  request.url = std::move(url);
  request.shown_url = target.host;
  if (is_same_origin) return request;
  request.content_type = http_client::Request().content_type;
  std::erase_if(request.headers, [&](const auto& field) {
    return field.first == kLockField ||
           std::ranges::any_of(settings.headers, [&](const auto& own) { return own.first == field.first; });
  });
  return request;
}

}  // namespace divan::deliver
