// Queries that wait for their index.
#include <future>

#include "divan/api/testing.h"
#include "divan/docs/writer.h"
#include "divan/index/builder.h"
#include "divan/index/views/view_kind.h"
#include "divan/kv/unwatched_testing.h"

namespace divan::api {
namespace {

// A server without builders: the test runs the builds.
struct ViewWait : Streams {
  workers::Monitor monitor{*store, registry, clock, rng};
  kv::testing::UnwatchedStore unwatched{*store};
  const Context on_unwatched = context_on(unwatched);
  std::optional<index::Builder> builder;

  ViewWait() {
    kinds.push_back(std::make_unique<index::views::ViewKind>(js_pool));
    index::declare_builds(queue, *store, kinds);
    builder.emplace(*store, catalog, queue, monitor, kinds, clock);
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
    std::vector<docs::IncomingDocument> documents;
    documents.push_back(docs::parse_document(
        R"({"_id":"_design/d","views":{"v":{"map":"function(doc) { emit(doc.n); }"}}})"));
    documents.push_back(docs::parse_document(R"({"_id":"a","n":1})"));
    docs::bulk_edit(*store, catalog, "db", documents, rng);
  }
  // Runs the build that the query requests, unless it is answered without one.
  template <class T>
  void run_build_for(const std::future<T>& query) {
    const std::vector<std::string> types{"views"};
    std::vector<jobs::AcceptedJob> accepted;
    while (accepted.empty()) {
      if (query.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return;
      accepted = store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}).jobs; });
      std::this_thread::yield();
    }
    builder->run(accepted.front());
  }
};

TEST_F(ViewWait, PollsIfTheStoreHasTooManyWatches) {
  responder = [this](const CallPtr& call) { return route(on_unwatched, call); };
  auto answer = std::async(std::launch::async, [&] {
    return http::Client("127.0.0.1", test.server.port()).request("GET", "/db/_design/d/_view/v");
  });
  run_build_for(answer);
  const auto response = answer.get();
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_THAT(response.body, testing::HasSubstr(R"("total_rows":1)"));
}

}  // namespace
}  // namespace divan::api
