#include "divan/replicator/replication.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error_testing.h"

namespace divan::replicator {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Replication parse(const std::string& members) {
  return Replication::parse(R"({"source":"a","target":"b")" + members + "}");
}

Endpoint endpoint(const std::string& json) {
  return Replication::parse(fmt::format(R"({{"source":{},"target":"b"}})", json)).source;
}

TEST(ReplicationTest, EndpointsAreNamesOrUrls) {
  EXPECT_EQ(endpoint(R"("a/b")").database, "a/b");
  EXPECT_FALSE(endpoint(R"("a")").is_remote());
  const auto url = endpoint(R"("https://ann:p%40ss:word@example.org:5984/db/")");
  EXPECT_TRUE(url.is_remote());
  EXPECT_EQ(url.url, "https://example.org:5984/db");
  EXPECT_EQ(url.user, "ann");
  EXPECT_EQ(url.password, "p@ss:word");
  EXPECT_EQ(url.shown(), "https://example.org:5984/db/");
  const auto object = endpoint(
      R"({"url":"http://h/db","headers":{"X-A":"1"},"auth":{"basic":{"username":"bob","password":"pw"}}})");
  EXPECT_EQ(object.user, "bob");
  EXPECT_THAT(object.headers, ElementsAre(Pair("X-A", "1")));
  EXPECT_EQ(endpoint(R"("HTTP://ann:pw@[::1]:5984/a%40b")").url, "HTTP://[::1]:5984/a%40b");
}

TEST(ReplicationTest, TheIdIsThatOfWhatIsCopied) {
  const auto id = [](const std::string& members) { return parse(members).id("server"); };
  EXPECT_EQ(id(""), id(R"(,"use_checkpoints":false,"checkpoint_interval":5)"));
  EXPECT_NE(id(""), parse("").id("another server"));
  EXPECT_NE(id(""), id(R"(,"doc_ids":[])"));
  EXPECT_EQ(id(R"(,"doc_ids":["x","y"])"), id(R"(,"doc_ids":["y","x","x"])"));
  EXPECT_NE(id(R"(,"selector":{"a":1})"), id(R"(,"selector":{"a":2})"));
  EXPECT_NE(id(R"(,"filter":"d/f")"), id(R"(,"filter":"d/f","query_params":{"a":1})"));
  EXPECT_EQ(id(R"(,"continuous":true,"create_target":true)"), id("") + "+continuous+create_target");
  EXPECT_EQ(base_of(id(R"(,"continuous":true)")), id(""));
  // A changed password is the same replication.
  const auto with_password = [](const std::string& password) {
    return Replication::parse(fmt::format(R"({{"source":"http://ann:{}@h/db","target":"b"}})", password))
        .id("server");
  };
  EXPECT_EQ(with_password("one"), with_password("two"));
}

TEST(ReplicationTest, RefusesWhatIsNone) {
  for (const std::string members : {R"(,"continuous":1)",
                                    R"(,"doc_ids":["a",1])",
                                    R"(,"selector":[])",
                                    R"(,"filter":{})",
                                    R"(,"doc_ids":[],"filter":"d/f")",
                                    R"(,"checkpoint_interval":0)",
                                    R"(,"source":null)",
                                    R"(,"source":{"url":"http://h/db","headers":{"a":"b\r\nc: d"}})",
                                    R"(,"target":"http://host")",
                                    R"(,"source":"http://u:a/b@host/db")",
                                    R"(,"source":"http://host/db?x")",
                                    R"(,"source":"http://host/db#x")",
                                    R"(,"source":"http:///db")",
                                    R"(,"source":"http://host:x/db")",
                                    R"(,"source":"file:///etc")",
                                    R"(,"source":"b")",
                                    R"(,"source":"_x")",
                                    R"(,"selector":{"$x":1})",
                                    R"(,"checkpoint_interval":1e30)",
                                    R"(,"source":{"url":"http://h/db","headers":5})",
                                    R"(,"source":{"url":"http://h/db","auth":{"oauth":{}}})"})
    EXPECT_THROW(parse(members), Error) << members;
  EXPECT_THROW(Replication::parse("[]"), Error);
  EXPECT_THROW(Replication::parse(R"({"source":"a"})"), Error);
}

}  // namespace
}  // namespace divan::replicator
