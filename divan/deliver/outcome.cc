#include "divan/deliver/outcome.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/printable.h"

namespace divan::deliver {
namespace {

constexpr std::size_t kShownBytes = 200;
constexpr std::chrono::seconds kMinPause{1};
constexpr std::chrono::seconds kMaxPause = std::chrono::hours(24);

std::string failure(const http_client::Response& response, const std::string& host) {
  if (response.status >= 300 && response.status < 400)
    return fmt::format("{} responds with {}, a redirect that is not followed.", host, response.status);
  auto text = fmt::format("{} responds with {}", host, response.status);
  const auto shown = utf8_prefix(response.body, kShownBytes);
  if (shown.empty()) return text + ".";
  return text + ": " + (is_utf8(shown) ? printable(shown) : "(not UTF-8)");
}

Outcome failed(const std::exception_ptr& error) {
  Outcome outcome{.is_receiver_down = true};
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    outcome.error = known.reason();
    // The request could not be made.
    if (known.status() == 400) outcome.is_receiver_down = false;
    if (known.name() == "address_not_allowed") outcome.error += " See the settings [deliver] allow and deny.";
  } catch (const std::exception& other) { outcome.error = other.what(); }
  return outcome;
}

Outcome finished(const http_client::AsyncClient::Result& result, const Settings& settings) {
  Outcome outcome{.kind = Outcome::Kind::finish};
  std::string_view why;
  if (settings.keeps_result) {
    if (result.is_too_large) {
      why = "The response is too large for a result.";
    } else if (result.exceeds_memory) {
      why = "The responses that have arrived at the same time need too much memory.";
    } else if (result.response.body.empty()) {
      why = "The response has no body.";
    } else {
      try {
        outcome.result = json::compact(result.response.body);
      } catch (const Error&) { why = "The response is not JSON."; }
    }
  }
  json::Writer writer(outcome.progress);
  writer.begin_object().key("status").number(result.response.status);
  if (!why.empty()) writer.key("no_result").string(why);
  writer.end_object();
  return outcome;
}

}  // namespace

bool is_redirect(int status) { return status == 307 || status == 308; }

Outcome outcome_of(const http_client::AsyncClient::Result& result, const Settings& settings,
                   const std::string& host) {
  if (result.error) return failed(result.error);
  const auto& response = result.response;
  const int status = response.status;
  if (status == 202) return {.kind = Outcome::Kind::detach, .progress = R"({"status":202})"};
  if (status >= 200 && status < 300) return finished(result, settings);
  Outcome outcome{.error = failure(response, host), .is_receiver_down = status >= 500};
  if (status == 409 || status == 410 || settings.fail_on.contains(status)) {
    outcome.kind = Outcome::Kind::fail_permanently;
  } else if ((status == 429 || status == 503) && response.retry_after) {
    outcome.kind = Outcome::Kind::release;
    outcome.pause = std::clamp(*response.retry_after, kMinPause, kMaxPause);
    outcome.is_receiver_down = false;
  }
  return outcome;
}

}  // namespace divan::deliver
