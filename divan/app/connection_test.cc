#include "divan/app/connection.h"

#include <gmock/gmock.h>

#include "divan/base/error.h"

namespace divan::app {
namespace {

using http::Credentials;

std::string refusal(std::string_view url) {
  try {
    parse_server_url(url);
  } catch (const Error& error) { return error.reason(); }
  return "";
}

TEST(ServerUrl, Forms) {
  const Credentials ann{"ann", "pw"};
  const std::map<std::string, ServerAddress> addresses = {
      {"http://host", {"host", 5984, {}}},
      {"http://host/", {"host", 5984, {}}},
      {"http://127.0.0.1:80", {"127.0.0.1", 80, {}}},
      {"http://[::1]", {"::1", 5984, {}}},
      {"http://[::1]:65535/", {"::1", 65535, {}}},
      {"http://ann:pw@host", {"host", 5984, ann}},
      {"http://ann:pw@host:1", {"host", 1, ann}},
      {"http://ann:pw@[::1]", {"::1", 5984, ann}},
      {"http://ann:@host", {"host", 5984, Credentials{"ann", ""}}},
      {"http://a%40n:p%2fw%3A%25:x@y@host:1", {"host", 1, Credentials{"a@n", "p/w:%:x@y"}}},
  };
  for (const auto& [url, address] : addresses) EXPECT_TRUE(parse_server_url(url) == address) << url;
}

TEST(ServerUrl, ErrorsShowNoPassword) {
  for (const auto* url :
       {"", "secret", "ann:secret@host", "https://ann:secret@host", "http:/ann:secret@host", "http://",
        "http://ann:secret@", "http://ann:secret@:80", "http://ann:secret", "http://secret@host",
        "http://ann:secret@host:", "http://ann:secret@host:secret", "http://ann:secret@host:0",
        "http://ann:secret@host:65536", "http://ann:secret/1@host", "http://ann:1?secret@host",
        "http://ann:1#secret@host", "http://ann:secret@host/path", "http://host?x"}) {
    EXPECT_NE(refusal(url), "") << url;
    EXPECT_THAT(refusal(url), testing::Not(testing::HasSubstr("secret"))) << url;
  }
  EXPECT_EQ(refusal("https://ann:secret@host"),
            "The server's URL begins with `https://`; expected http://HOST:PORT.");
}

TEST(ServerUrl, IsShownWithoutCredentials) {
  EXPECT_EQ(url_without_credentials("http://ann:p@w@host:1/"), "http://host:1/");
  EXPECT_EQ(url_without_credentials("http://host"), "http://host");
}

}  // namespace
}  // namespace divan::app
