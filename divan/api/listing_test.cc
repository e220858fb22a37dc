// Listings of documents, from a local and from a remote store; the latter prefetches rows and bodies.
#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/base/json.h"
#include "divan/docs/local.h"
#include "divan/docs/writer.h"
#include "divan/kv/remote_testing.h"

namespace divan::api {
namespace {

struct Listings : Streams {
  kv::testing::RemoteStore remote_store{*store};
  const Context remote = context_on(remote_store);
  std::atomic<bool> is_remote = false;

  Listings() {
    responder = [this](const CallPtr& call) { return route(is_remote ? remote : context, call); };
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
    std::vector<docs::IncomingDocument> documents;
    for (int i = 0; i < 40; ++i)
      documents.push_back(
          docs::parse_document(fmt::format(R"({{"_id":"d{:02}","t":"{}"}})", i, std::string(20'000, 'x'))));
    for (const auto* id : {"_design/a", "_design/b"})
      documents.push_back(docs::parse_document(fmt::format(R"({{"_id":"{}","n":1}})", id)));
    docs::bulk_edit(*store, catalog, "db", documents, rng);
    docs::bulk_replicate(*store, catalog, "db",
                         {docs::parse_document(R"({"_id":"e","_rev":"2-b"})"),
                          docs::parse_document(R"({"_id":"e","_rev":"2-a"})"),
                          docs::parse_document(R"({"_id":"gone","_rev":"1-g","_deleted":true})")});
    store->run([&](kv::Transaction& tx) {
      for (const auto* id : {"_local/a", "_local/b"})
        docs::write_local(tx, catalog.open(tx, "db"),
                          docs::parse_document(fmt::format(R"({{"_id":"{}"}})", id)));
    });
  }
  std::string get(const std::string& target, bool from_remote) {
    is_remote = from_remote;
    // Pages may be separated by white space.
    return json::compact(http::Client("127.0.0.1", test.server.port()).request("GET", target).body);
  }
};

// The bodies of all documents take several pages.
TEST_F(Listings, ARemoteStoreReturnsTheSame) {
  const std::string keys =
      "keys=%5B%22d03%22,%22gone%22,%22nobody%22,7,%22e%22,%22d01%22,%22_design/a%22,%22_local/b%22%5D";
  for (const std::string listing : {"_all_docs", "_design_docs", "_local_docs"}) {
    const std::vector<std::string> ranges = {"", "startkey=%22d05%22&endkey=%22d20%22", "limit=3&skip=2",
                                             keys, keys + "&limit=4&skip=1"};
    for (const auto& rows : ranges) {
      for (const std::string order : {"", "&descending=true"}) {
        for (const std::string shown :
             {"", "&include_docs=true", "&include_docs=true&conflicts=true&update_seq=true"}) {
          const std::string target = "/db/" + listing + "?" + rows + order + shown;
          const std::string near = get(target, false);
          EXPECT_THAT(near, testing::HasSubstr("\"rows\":[")) << target;
          EXPECT_EQ(get(target, true), near) << target;
        }
      }
    }
  }
  EXPECT_GT(get("/db/_all_docs?include_docs=true", true).size(), 800'000u);
  EXPECT_THAT(get("/db/_all_docs?include_docs=true&conflicts=true&key=%22e%22", true),
              testing::HasSubstr(R"("_conflicts":["2-a"])"));
  EXPECT_THAT(get("/db/_all_docs?" + keys, true),
              testing::AllOf(testing::HasSubstr(R"("deleted":true)"),
                             testing::HasSubstr(R"({"key":7,"error":"not_found"})")));
}

// Only the rows of a page are prefetched, however many pages the listing has.
TEST_F(Listings, ARemoteStoreNeedsFewRoundTripsForAPage) {
  const auto waits = [&](const std::string& target) {
    const int before = remote_store.round_trips;
    get(target, true);
    return remote_store.round_trips - before;
  };
  EXPECT_LE(waits("/db/_all_docs?include_docs=true&limit=10"), 5);
  EXPECT_LE(waits("/db/_all_docs?include_docs=true&keys=%5B%22d03%22,%22d04%22,%22e%22%5D"), 5);
}

}  // namespace
}  // namespace divan::api
