#include "divan/api/service.h"

#include <prometheus/counter.h>

#include "divan/api/errors.h"
#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"
#include "divan/api/user_documents.h"
#include "divan/base/log.h"

namespace divan::api {
namespace {

// Sent to clients whose passwords cannot be checked now.
constexpr int kRetryAfterSeconds = 5;

constexpr std::int64_t kDefaultMaxBody = 64 << 20;

}  // namespace

Service::Service(Context context)
    : context_(std::move(context)),
      trusted_proxies_(context_.config.get("chttpd", "trusted_proxies", "")),
      is_remote_(context_.store.begin()->is_remote()) {}

void Service::handle(const std::shared_ptr<http::Exchange>& exchange) { begin(exchange, true); }

void Service::begin(const std::shared_ptr<http::Exchange>& exchange, bool is_io_thread) {
  {
    std::lock_guard lock(mutex_);
    ++running_;
  }
  run(exchange, is_io_thread);
}

void Service::stop() const { stop_waits(context_); }

void Service::wait_for_requests() {
  std::unique_lock lock(mutex_);
  none_left_.wait(lock, [this] { return running_ == 0; });
}

void Service::end_request() {
  std::lock_guard lock(mutex_);
  if (--running_ == 0) none_left_.notify_all();
}

PasswordWaiter Service::password_waiter(const std::shared_ptr<http::Exchange>& exchange) {
  return {.bytes = exchange->request().body().size(),
          .disconnected = [exchange] { return exchange->closed(); },
          .done =
              [this, exchange](const Error* refusal) {
                if (refusal == nullptr) return begin(exchange, false);
                auto response = http::error_response(*refusal);
                response.headers.push_back({"Retry-After", std::to_string(kRetryAfterSeconds)});
                exchange->respond(std::move(response));
              }};
}

Detached Service::run(std::shared_ptr<http::Exchange> exchange, bool is_io_thread) {
  if (!is_io_thread) {
    RequestExecutor executor(*exchange, context_.pool);
    co_await resume_on(executor);
  }
  co_await complete(*exchange, context_.stopping, respond(exchange));
  exchange.reset();
  end_request();
}

Async<RouteResult> Service::respond(const std::shared_ptr<http::Exchange>& exchange) {
  const auto call = std::make_shared<Call>(exchange, context_.pool);
  if (is_remote_) co_await call->executor().allow_blocking();
  if (const auto name = context_.accounts.user_of(call->header("Authorization"))) {
    auto account = co_await call->run(
        context_.store, [&](kv::Transaction& tx) { return find_user(tx, context_.catalog, *name); });
    if (!authenticate(*call, std::move(account))) co_return std::nullopt;
  } else if (!authenticate(*call, std::nullopt)) {
    co_return std::nullopt;
  }
  // The connection may be closed while the request waits.
  if (context_.stopping) check_connected(*exchange);
  co_return co_await route(context_, call);
}

bool Service::authenticate(Call& call, std::optional<Account> account) {
  const auto& exchange = call.exchange();
  auto user = context_.accounts.authenticate(call.header("Authorization"), std::move(account),
                                             trusted_proxies_.client_of(exchange->request()),
                                             password_waiter(exchange));
  if (!user) return false;
  call.set_user(*std::move(user));
  call.limit_body(static_cast<std::size_t>(
      context_.config.get_int("chttpd", "max_http_request_size", kDefaultMaxBody, 0, INT64_MAX)));
  return true;
}

Async<void> complete(http::Exchange& exchange, const std::atomic<bool>& stopping, Async<RouteResult> route) {
  std::optional<Error> failure;
  try {
    if (auto response = co_await std::move(route)) exchange.respond(*std::move(response));
    co_return;
  } catch (const MethodNotAllowed& error) {
    auto response = http::error_response(error);
    response.headers.push_back({"Allow", error.allowed()});
    exchange.respond(std::move(response));
    co_return;
  } catch (const ServerBusy& error) {
    // Not logged: there may be thousands of them.
    exchange.respond(http::error_response(error));
    co_return;
  } catch (const Error& error) { failure = error; } catch (const kv::Error& error) {
    failure = http_error(error);
  } catch (const std::exception& error) {
    log::error("{} {}: {}", exchange.request().method(), exchange.request().target(), error.what());
    if (!exchange.responded())
      exchange.respond(http::error_response(internal_error("Internal error; see the server's log.")));
    co_return;
  }
  if (exchange.closed()) co_return;
  if (exchange.responded()) {
    // The connection is closed when the exchange is released, so that the client detects the incomplete
    // response.
    log::warning("{} {}: the response was aborted: {}", exchange.request().method(),
                 exchange.request().target(), failure->what());
  } else if (stopping && failure->status() == 503) {
    // Not logged: thousands of requests may fail for that reason.
    exchange.respond(http::error_response(*failure));
  } else {
    exchange.fail(*failure);
  }
}

}  // namespace divan::api
