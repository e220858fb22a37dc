// A fixture for tests of streamed responses.
#pragma once

#include <gmock/gmock.h>

#include "divan/api/feed.h"
#include "divan/api/index_waits.h"
#include "divan/api/routes.h"
#include "divan/api/service.h"
#include "divan/api/streamed_body.h"
#include "divan/api/tail.h"
#include "divan/api/uuids.h"
#include "divan/api/validations.h"
#include "divan/compaction/compactor.h"
#include "divan/http/testing.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::api {

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

// A server that responds to every request as the test defines.
struct Streams : ::testing::Test {
  using Responder = std::function<Async<RouteResult>(const CallPtr& call)>;

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
  Uuids uuids{rng, clock};
  Accounts accounts{rng, clock};
  Responder responder;
  std::atomic<int> responding = 0;  // coroutines of requests
  std::atomic<int> handled = 0;     // requests for which the responder was called
  ThreadPool pool{"request", 2, 100};
  std::atomic<bool> stopping = false;
  ThreadPool backups{"backup", 1, 1};
  backup::Restores restores{*store, catalog, clock, rng};
  docs::Uploads uploads{*store, catalog, clock, rng};
  compaction::Compactor compactor{*store, catalog, clock, config, false};
  BodyMemory body_memory{kBodyMemory, MutexRank::requests};
  FunctionThreads function_threads{2};
  Tails tails{bus, function_threads};
  IndexWaits index_waits;
  jobs::Acceptor acceptor{queue, *store, clock};
  js::Pool js_pool{{.binary = DIVAN_JS_BINARY, .processes = 1}, clock};
  Validations validations{js_pool, function_threads};
  const Context context = context_on(*store);
  http::testing::TestServer test{[this](const std::shared_ptr<http::Exchange>& exchange) { run(exchange); }};

  // Before the members of derived fixtures are destroyed, since requests may still use them.
  void TearDown() override {
    test.server.stop();
    ASSERT_TRUE(http::testing::eventually([this] { return responding == 0; }));
    function_threads.stop();
    pool.stop();
  }

  // The context of a server with another store.
  Context context_on(kv::Database& database) {
    return {database, catalog,  queue,   acceptor,         registry,    kinds, clock,
            rng,      uuids,    config,  metrics,          accounts,    pool,  stopping,
            backups,  restores, uploads, compactor,        body_memory, tails, index_waits,
            {},       {},       js_pool, function_threads, validations};
  }

  Detached run(std::shared_ptr<http::Exchange> exchange) {
    ++responding;
    co_await complete(*exchange, stopping, respond(exchange));
    exchange.reset();
    --responding;
  }
  // Calls the responder on a worker thread, for an administrator.
  Async<RouteResult> respond(const std::shared_ptr<http::Exchange>& exchange) {
    const auto call = std::make_shared<Call>(exchange, pool);
    call->set_user({"admin", true});
    co_await call->executor().allow_blocking();
    ++handled;
    co_return co_await responder(call);
  }
};

}  // namespace divan::api
