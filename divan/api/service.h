// Connects the HTTP server with the routes.
#pragma once

#include "divan/api/call.h"
#include "divan/api/client_address.h"
#include "divan/api/context.h"
#include "divan/api/routes.h"
#include "divan/http/exchange.h"

namespace divan::api {

/// Authenticates requests and runs their routes. Thread-safe. Everything that the context refers to must
/// outlive it and all exchanges.
class Service {
 public:
  explicit Service(Context context);

  /// Begins a request. Does not block: the HTTP server's threads call it. On a remote store, whose reads
  /// block, requests are handled by the workers from the beginning.
  void handle(const std::shared_ptr<http::Exchange>& exchange);

  /// Ends feeds and all other requests that would continue until the client disconnects.
  void stop() const;

  /// Blocks until no coroutine of a request is left. To be called when no more requests arrive, and before
  /// the workers are stopped.
  void wait_for_requests();

 private:
  // Handles the exchange again when its password has been checked.
  PasswordWaiter password_waiter(const std::shared_ptr<http::Exchange>& exchange);
  void begin(const std::shared_ptr<http::Exchange>& exchange, bool is_io_thread);
  Detached run(std::shared_ptr<http::Exchange> exchange, bool is_io_thread);
  Async<RouteResult> respond(const std::shared_ptr<http::Exchange>& exchange);
  // Sets the user of the call. Returns false if the request waits until its password has been checked.
  Async<bool> authenticate(Call& call);
  Async<bool> use_session(Call& call);
  bool use_external_identity(Call& call);
  Async<bool> check_password(Call& call);
  // Replaces the hash of a user's password, which was right, if it is weaker than that of a new one.
  Async<void> upgrade_hash(Call& call, const http::Credentials& credentials, const Account& account);
  Async<std::optional<Account>> find_account(Call& call, const std::string& name);
  void send_cookie(const Call& call, std::string_view value) const;
  void end_request();

  const Context context_;
  const TrustedProxies trusted_proxies_;
  const bool is_remote_;

  Mutex mutex_{MutexRank::requests, "Service::mutex_"};  // protects the members below
  ConditionVariable none_left_;
  std::size_t running_ = 0;  // coroutines of requests
};

/// Runs a route and responds with its result or its error. If an error comes after the response has begun,
/// the caller must release the exchange, which closes the connection.
Async<void> complete(http::Exchange& exchange, const std::atomic<bool>& stopping, Async<RouteResult> route);

}  // namespace divan::api
