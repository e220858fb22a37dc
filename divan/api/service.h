// Connects the HTTP server with the routes.
#pragma once

#include "divan/api/client_address.h"
#include "divan/api/context.h"
#include "divan/http/exchange.h"

namespace divan::api {

/// Authenticates requests and runs their routes, on the context's pool. Thread-safe. Everything that the
/// context refers to must outlive it and all exchanges.
class Service {
 public:
  explicit Service(Context context);

  /// Queues a request for the pool. Does not block: the HTTP server's threads call it.
  void handle(const std::shared_ptr<http::Exchange>& exchange) const;

  /// Ends feeds and all other requests that would continue until the client disconnects.
  void stop() const;

 private:
  // Handles the exchange again when its password has been checked.
  PasswordWaiter password_waiter(const std::shared_ptr<http::Exchange>& exchange) const;
  void work(const std::shared_ptr<http::Exchange>& exchange) const;

  const Context context_;
  const TrustedProxies trusted_proxies_;
};

}  // namespace divan::api
