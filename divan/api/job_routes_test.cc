// Requests about jobs that need a damaged store, or a client that closes its side of the connection.
#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/jobs/rows.h"

namespace divan::api {
namespace {

using testing::HasSubstr;
using testing::Not;

struct JobRoutes : Streams {
  JobRoutes() {
    responder = [this](const CallPtr& call) { return route(context, call); };
    store->run([&](kv::Transaction& tx) {
      queue.set_type(tx, "t", {});
      queue.add(tx, "t", "j", "{}");
    });
  }
  http::ClientResponse request(std::string_view method, const std::string& path) {
    return http::Client("127.0.0.1", test.server.port()).request(method, path);
  }
  void damage(const jobs::JobKey& key) {
    store->run([&](kv::Transaction& tx) { tx.set(key.key(), "?"); });
  }
};

TEST_F(JobRoutes, ADamagedJobCanBeRemovedById) {
  damage(jobs::JobKey("job").string("t").string("j"));
  EXPECT_EQ(request("GET", "/_jobs/t/j").status, 500);
  EXPECT_EQ(request("DELETE", "/_jobs/t/j").status, 200);
  EXPECT_EQ(request("GET", "/_jobs/t/j").status, 404);
  EXPECT_EQ(request("DELETE", "/_jobs/t/j").status, 404);
  EXPECT_THAT(request("GET", "/_jobs/t").body, HasSubstr(R"("pending":0)"));
}

TEST_F(JobRoutes, ATypeWithDamagedSettingsDoesNotHideOthers) {
  store->run([&](kv::Transaction& tx) { queue.set_type(tx, "bad", {}); });
  damage(jobs::JobKey("type").string("bad"));
  const auto types = request("GET", "/_jobs");
  EXPECT_EQ(types.status, 200);
  EXPECT_THAT(types.body, HasSubstr(R"("type":"t")"));
  EXPECT_THAT(types.body, Not(HasSubstr(R"("type":"bad")")));
  EXPECT_EQ(request("DELETE", "/_jobs/bad?force=true").status, 200);
}

// It cannot be distinguished from one that has disconnected.
TEST_F(JobRoutes, AWaitEndsWhenTheClientClosesItsSide) {
  http::testing::RawClient client(test.server);
  const std::string body = R"({"jobs":[{"type":"t","id":"j"}],"timeout":300000})";
  client.send(
      fmt::format("POST /_jobs/_wait HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  body.size(), body));
  client.end_output();
  const auto response = client.response();
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"("reached":0)"));
}

}  // namespace
}  // namespace divan::api
