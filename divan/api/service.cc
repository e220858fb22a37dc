#include "divan/api/service.h"

#include <prometheus/counter.h>

#include "divan/api/errors.h"
#include "divan/api/routes.h"
#include "divan/api/task.h"
#include "divan/base/log.h"

namespace divan::api {
namespace {

// Sent to clients whose passwords cannot be checked now.
constexpr int kRetryAfterSeconds = 5;

constexpr std::int64_t kDefaultMaxBody = 64 << 20;

}  // namespace

Service::Service(Context context)
    : context_(std::move(context)), trusted_proxies_(context_.config.get("chttpd", "trusted_proxies", "")) {}

void Service::handle(const std::shared_ptr<http::Exchange>& exchange) const {
  const bool taken = context_.pool.submit([this, exchange] { work(exchange); });
  if (!taken)
    exchange->respond(http::error_response(Error(503, "service_unavailable", "The server is busy.")));
}

void Service::stop() const { stop_tasks(context_); }

PasswordWaiter Service::password_waiter(const std::shared_ptr<http::Exchange>& exchange) const {
  return {.bytes = exchange->request().body().size(),
          .disconnected = [exchange] { return exchange->closed(); },
          .done =
              [this, exchange](const Error* refusal) {
                if (refusal == nullptr) return handle(exchange);
                auto response = http::error_response(*refusal);
                response.headers.push_back({"Retry-After", std::to_string(kRetryAfterSeconds)});
                exchange->respond(std::move(response));
              }};
}

void Service::work(const std::shared_ptr<http::Exchange>& exchange) const {
  // The connection was closed while the request waited.
  if (context_.stopping && exchange->closed()) return;
  try {
    const auto call = std::make_shared<Call>(exchange);
    const auto& request = exchange->request();
    auto user = context_.accounts.authenticate(
        request.header("Authorization"), trusted_proxies_.client_of(request), password_waiter(exchange));
    if (!user) return;
    call->set_user(*std::move(user));
    call->limit_body(static_cast<std::size_t>(
        context_.config.get_int("chttpd", "max_http_request_size", kDefaultMaxBody, 0, INT64_MAX)));
    if (auto response = route(context_, call)) exchange->respond(*std::move(response));
  } catch (const MethodNotAllowed& error) {
    auto response = http::error_response(error);
    response.headers.push_back({"Allow", error.allowed()});
    exchange->respond(std::move(response));
  } catch (const Error& error) { exchange->fail(error); } catch (const kv::Error& error) {
    exchange->fail(http_error(error));
  } catch (const std::exception& error) {
    log::error("{} {}: {}", exchange->request().method(), exchange->request().target(), error.what());
    exchange->respond(http::error_response(internal_error("Internal error; see the server's log.")));
  }
}

}  // namespace divan::api
