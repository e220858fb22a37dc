// A fixture for tests of streamed responses.
#pragma once

#include <gmock/gmock.h>

#include "divan/api/errors.h"
#include "divan/api/feed.h"
#include "divan/api/index_waits.h"
#include "divan/api/routes.h"
#include "divan/api/tail.h"
#include "divan/http/testing.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::api {

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

// A server that responds to every request as the test defines, on a pool as the real one does.
struct Streams : ::testing::Test {
  using Responder = std::function<void(const CallPtr& call)>;

  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  index::Kinds kinds;
  Config config;
  Metrics metrics;
  Accounts accounts{rng, clock};
  Responder responder;
  std::atomic<int> responding = 0;  // coroutines of respond_as_server()
  ThreadPool pool{"request", 2, 100};
  std::atomic<bool> stopping = false;
  ThreadPool backups{"backup", 1, 1};
  backup::Restores restores{*store, catalog, clock, rng};
  Tails tails{bus};
  IndexWaits index_waits;
  jobs::Acceptor acceptor{queue, *store, clock};
  js::Pool js_pool{{.binary = DIVAN_JS_BINARY, .processes = 1}, clock};
  const Context context = context_on(*store);
  http::testing::TestServer test{[this](const std::shared_ptr<http::Exchange>& exchange) {
    pool.submit([this, exchange] { responder(std::make_shared<Call>(exchange, pool)); });
  }};

  // Before the members of derived fixtures are destroyed, since requests may still use them.
  void TearDown() override {
    test.server.stop();
    ASSERT_TRUE(http::testing::eventually([this] { return responding == 0; }));
    pool.stop();
  }

  // The context of a server with another store.
  Context context_on(kv::Database& database) {
    return {database, catalog, queue,    acceptor, registry, kinds, clock,       rng, config, metrics,
            accounts, pool,    stopping, backups,  restores, tails, index_waits, {},  {},     js_pool};
  }

  // Responds as the real server does, to an administrator.
  Detached respond_as_server(const Context& of_server, CallPtr call) {
    ++responding;
    call->set_user({"admin", true});
    try {
      if (auto response = co_await route(of_server, call)) call->exchange()->respond(*std::move(response));
    } catch (const Error& error) { call->exchange()->fail(error); } catch (const kv::Error& error) {
      call->exchange()->fail(http_error(error));
    }
    call.reset();
    --responding;
  }
};

}  // namespace divan::api
