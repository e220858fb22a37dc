// The door between the HTTP server and the routes.
#pragma once

#include "divan/api/client_address.h"
#include "divan/api/context.h"
#include "divan/http/exchange.h"

namespace divan::api {

/// Takes requests on the HTTP server's threads, and works on them on the pool. Thread-safe; what the context
/// refers to must outlive it and all exchanges.
class Service {
 public:
  explicit Service(Context context);

  void handle(std::shared_ptr<http::Exchange> exchange) const;

  /// Ends feeds and whatever else would go on until its client leaves.
  void stop() const;

 private:
  // Handles the exchange again when its password has been checked.
  PasswordWaiter password_waiter(const std::shared_ptr<http::Exchange>& exchange) const;
  void work(const std::shared_ptr<http::Exchange>& exchange) const;

  const Context context_;
  const TrustedProxies trusted_proxies_;
};

}  // namespace divan::api
