#include "divan/http/message.h"

#include <gtest/gtest.h>

#include "divan/base/json.h"

namespace divan::http {
namespace {

struct TargetCase {
  std::string target, path, query;
};

TEST(HttpRequest, ATargetIsSplitAtItsFirstQuestionMark) {
  const TargetCase cases[] = {
      {"/", "/", ""},
      {"/db/doc?rev=1-a&x=?", "/db/doc", "rev=1-a&x=?"},
      {"/db%2Fx?", "/db%2Fx", ""},
      {"*", "*", ""},
      {"http://host:5984/db?a=b", "/db", "a=b"},
      {"http://host", "/", ""},
      {"http://host?a=b", "/", "a=b"},
      {"/proxy/http://host/x?y", "/proxy/http://host/x", "y"},
      {"", "/", ""},
  };
  for (const auto& [target, path, query] : cases) {
    const Request request("GET", target);
    EXPECT_EQ(request.target(), target);
    EXPECT_EQ(request.path(), path) << target;
    EXPECT_EQ(request.query(), query) << target;
  }
}

TEST(HttpRequest, HeaderNamesAreCaseInsensitiveAndTheFirstFieldCounts) {
  Request request("PUT", "/");
  request.add_header("X-One", "1");
  request.add_header("x-one", "2");
  request.add_header("Empty", "");
  EXPECT_EQ(request.header("X-ONE"), "1");
  EXPECT_EQ(request.header("empty"), "");
  EXPECT_EQ(request.header("X-On"), std::nullopt);
  using Pair = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(request.headers(), (std::vector<Pair>{{"X-One", "1"}, {"x-one", "2"}, {"Empty", ""}}));
  // Only letters have a case: '[' and '{' differ by the same bit.
  EXPECT_FALSE(equal_ignoring_case("x[", "x{"));
}

TEST(HttpRequest, AMovedRequestKeepsItsParts) {
  Request request("GET", "/a?b");
  request.add_header("n", "v");
  request.append_body("body");
  Request moved = std::move(request);
  EXPECT_EQ(moved.method(), "GET");
  EXPECT_EQ(moved.query(), "b");
  EXPECT_EQ(moved.header("n"), "v");
  EXPECT_EQ(moved.take_body(), "body");
  EXPECT_EQ(moved.body(), "");
}

TEST(HttpResponse, AnErrorIsJsonInCouchDBsForm) {
  const auto response = error_response(Error(418, "a \"name\"", "line\nbreak"));
  EXPECT_EQ(response.status, 418);
  EXPECT_EQ(response.body, "{\"error\":\"a \\\"name\\\"\",\"reason\":\"line\\nbreak\"}\n");
}

}  // namespace
}  // namespace divan::http
