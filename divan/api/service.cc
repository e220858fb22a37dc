#include "divan/api/service.h"

#include <prometheus/counter.h>

#include "divan/api/cors.h"
#include "divan/api/errors.h"
#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"
#include "divan/api/session_routes.h"
#include "divan/api/streamed_body.h"
#include "divan/api/user_documents.h"
#include "divan/base/log.h"

namespace divan::api {
namespace {

// Sent to clients whose passwords cannot be checked now.
constexpr int kRetryAfterSeconds = 5;

constexpr std::int64_t kDefaultMaxBody = 64 << 20;

// A browser sends the cookie with requests of any page. It asks the server before it sends them (cors.h),
// except for a GET, and for a POST of a form or without a type.
void check_cross_site(Call& call) {
  call.set_ambient_credentials();
  const bool may_be_a_form =
      call.method() == "POST" && !call.header("Content-Type").value_or("").starts_with("application/json");
  if (may_be_a_form)
    throw Error(415, "bad_content_type", "With a session, Content-Type must be application/json");
}

// CouchDB's [chttpd] require_valid_user and require_valid_user_except_for_up. (A login has a user.)
bool requires_user(const Call& call, const Config& config) {
  const bool except_up = config.get_bool("chttpd", "require_valid_user_except_for_up", false);
  const bool is_up = call.path().size() == 1 && call.path()[0] == "_up";
  return except_up ? !is_up : config.get_bool("chttpd", "require_valid_user", false);
}

constexpr std::string_view kChallenge = "X-CouchDB-WWW-Authenticate";

// A client can choose the challenge: that of Basic makes browsers ask for a name and a password.
void add_challenge(const http::Request& request, http::Response& response, std::string_view fallback) {
  const auto chosen = request.header(kChallenge).value_or(fallback);
  if (!chosen.empty()) response.headers.push_back({"WWW-Authenticate", std::string(chosen)});
}

http::Response authentication_required(const http::Request& request) {
  auto response = http::error_response(unauthorized("Authentication required."));
  add_challenge(request, response, "Basic realm=\"server\"");
  return response;
}

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
  if (exchange->request().header("Origin")) {
    if (auto preflight = preflight_response(exchange->request(), context_.config)) co_return preflight;
    exchange->set_extra_headers(cors_headers(exchange->request(), context_.config));
  }
  const auto call = std::make_shared<Call>(exchange, context_.pool);
  std::exception_ptr failure;
  try {
    if (is_remote_) co_await call->executor().allow_blocking();
    const bool is_known = co_await authenticate(*call);
    if (!is_known) co_return std::nullopt;
    if (call->user().name.empty() && requires_user(*call, context_.config))
      co_return authentication_required(exchange->request());
    // The connection may be closed while the request waits.
    if (context_.stopping) check_connected(*exchange);
    co_return co_await route(context_, call);
  } catch (...) { failure = std::current_exception(); }
  co_await discard_body(context_, *call);
  std::rethrow_exception(failure);
}

Async<bool> Service::authenticate(Call& call) {
  bool is_known = false;
  if (!is_login(call) && !is_logout(call)) {
    if (call.header("Cookie")) is_known = co_await use_session(call);
    if (!is_known) is_known = use_external_identity(call);
  }
  if (!is_known) is_known = co_await check_password(call);
  call.limit_body(static_cast<std::size_t>(
      context_.config.get_int("chttpd", "max_http_request_size", kDefaultMaxBody, 0, INT64_MAX)));
  co_return is_known;
}

// Returns false if the request has no valid session.
Async<bool> Service::use_session(Call& call) {
  const auto session = parse_session(*call.header("Cookie"));
  if (!session) co_return false;
  std::optional<Account> account;
  if (!context_.accounts.is_admin(session->name)) account = co_await find_account(call, session->name);
  auto user = context_.accounts.authenticate(*session, account);
  if (!user) co_return false;
  call.set_user(*std::move(user));
  check_cross_site(call);
  if (context_.accounts.is_to_be_renewed(*session))
    send_cookie(call, context_.accounts.new_session(session->name, account));
  co_return true;
}

// Returns false if no other server has authenticated the user.
bool Service::use_external_identity(Call& call) {
  const auto& request = call.exchange()->request();
  auto user = context_.accounts.authenticate_token(request);
  if (!user) {
    user = context_.accounts.authenticate_proxy(request);
    // A browser may log in at the proxy without being asked, as it sends cookies.
    if (user) check_cross_site(call);
  }
  if (!user) return false;
  call.set_user(*std::move(user));
  return true;
}

// A request without a name and a password is anonymous.
Async<bool> Service::check_password(Call& call) {
  std::optional<http::Credentials> credentials;
  if (is_login(call)) {
    credentials = login_credentials(call);
  } else if (const auto field = call.header("Authorization")) {
    // As in CouchDB, an unknown scheme means no credentials.
    credentials = http::parse_basic(*field);
  }
  if (!credentials) co_return true;
  std::optional<Account> account;
  if (!context_.accounts.is_admin(credentials->name))
    account = co_await find_account(call, credentials->name);
  const auto& exchange = call.exchange();
  std::optional<User> user;
  try {
    user = context_.accounts.authenticate(
        *credentials, account, trusted_proxies_.client_of(exchange->request()), password_waiter(exchange));
  } catch (const Error& error) {
    if (is_login(call) && error.status() == 401) send_cookie(call, "");
    throw;
  }
  if (!user) co_return false;
  call.set_user(*std::move(user));
  if (account) co_await upgrade_hash(call, *credentials, *account);
  if (is_login(call)) send_cookie(call, context_.accounts.new_session(credentials->name, account));
  co_return true;
}

Async<void> Service::upgrade_hash(Call& call, const http::Credentials& credentials, const Account& account) {
  // A request for the user's document would conflict with it.
  const bool is_for_users = !call.path().empty() && call.path()[0] == kUsersDatabase;
  if (is_for_users || !context_.accounts.needs_upgrade(account.password)) co_return;
  co_await call.executor().allow_blocking();
  std::optional<PasswordHash> upgraded;
  if (const auto permit = context_.accounts.begin_upgrade(credentials.name))
    upgraded = context_.accounts.upgraded_hash(credentials.password, account.password);
  if (!upgraded) co_return;
  try {
    co_await call.run(context_.store, [&](kv::Transaction& tx) {
      replace_hash(tx, context_.catalog, credentials.name, account.password, *upgraded);
    });
  } catch (const std::exception& error) {
    log::warning("The password hash of user `{}` could not be upgraded: {}", credentials.name, error.what());
  }
}

Async<std::optional<Account>> Service::find_account(Call& call, const std::string& name) {
  co_return co_await call.run(context_.store,
                              [&](kv::Transaction& tx) { return find_user(tx, context_.catalog, name); });
}

void Service::send_cookie(const Call& call, std::string_view value) const {
  auto headers = cors_headers(call.exchange()->request(), context_.config);
  headers.push_back({"Set-Cookie", session_cookie_field(value, context_.config, is_https(call),
                                                        context_.clock.wall_ms() / 1000)});
  call.exchange()->set_extra_headers(std::move(headers));
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
  } else if (failure->status() == 401 && exchange.request().header(kChallenge)) {
    auto response = http::error_response(*failure);
    add_challenge(exchange.request(), response, "");
    exchange.respond(std::move(response));
  } else {
    exchange.fail(*failure);
  }
}

}  // namespace divan::api
