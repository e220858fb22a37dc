#include "divan/deliver/message.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/deliver/signature.h"
#include "divan/http/url.h"
#include "divan/http_client/url.h"
#include "divan/jobs/periodic.h"

namespace divan::deliver {
namespace {

constexpr std::string_view kLockField = "divan-lock";
constexpr std::size_t kIdBytes = 16;

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
           return lower(x) == lower(y);
         });
}

}  // namespace

std::string message_id(const jobs::AcceptedJob& accepted) {
  const auto& job = accepted.job;
  // The number of the run's first attempt: each further one follows a failed or a lost one.
  const auto first = job.attempt - job.failures - job.lost;
  // Attempts of a periodic job are counted from its tick on.
  const auto tick = jobs::is_periodic(job) ? job.scheduled_at : 0;
  Digest digest(Digest::Algorithm::sha256);
  digest.add(fmt::format("{}:{}{}:{}{}:{}:{}:", job.type.size(), job.type, job.id.size(), job.id,
                         job.added_at, first, tick));
  digest.add(accepted.data);
  return "msg_" + to_hex(digest.value().substr(0, kIdBytes));
}

http_client::Request make_request(const jobs::AcceptedJob& accepted, const Settings& settings,
                                  std::int64_t now_ms) {
  const auto& job = accepted.job;
  http_client::Request request{.method = settings.method, .url = settings.url};
  request.shown_url = settings.host;
  request.body = accepted.data;
  request.timeout = settings.timeout;
  const auto id = message_id(accepted);
  const auto timestamp = now_ms / 1000;
  request.headers = {{"User-Agent", "Divan"},
                     {"webhook-id", id},
                     {"webhook-timestamp", std::to_string(timestamp)},
                     {"divan-type", http::percent_encode(job.type)},
                     {"divan-id", http::percent_encode(job.id)},
                     {"divan-attempt", std::to_string(job.attempt)},
                     {"divan-epoch", std::to_string(job.epoch)},
                     {std::string(kLockField), job.lock}};
  if (!settings.secrets.empty())
    request.headers.emplace_back("webhook-signature", sign(settings.secrets, id, timestamp, request.body));
  for (const auto& [name, value] : settings.headers) {
    if (equals_ignoring_case(name, "content-type")) {
      request.content_type = value;
    } else {
      request.headers.emplace_back(name, value);
    }
  }
  return request;
}

http_client::Request redirected(const http_client::Request& request, const Settings& settings,
                                const std::string& url) {
  const auto target = http_client::parse_url(url);
  auto next = request;
  next.url = url;
  next.shown_url = target.host;
  if (target.origin == http_client::parse_url(request.url).origin) return next;
  std::erase_if(next.headers, [&](const auto& field) {
    return field.first == kLockField ||
           std::ranges::any_of(settings.headers, [&](const auto& own) { return own.first == field.first; });
  });
  return next;
}

}  // namespace divan::deliver
