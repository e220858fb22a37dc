#include "divan/http/basic_auth.h"

#include <gtest/gtest.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::http {
namespace {

TEST(HttpBasicAuth, RoundTrip) {
  for (const Credentials& credentials : {Credentials{"admin", "secret"}, {"a", "with:colon"}, {"", ""}}) {
    EXPECT_EQ(parse_basic(basic_authorization(credentials)), credentials);
  }
  EXPECT_EQ(basic_authorization({"admin", "secret"}), "Basic YWRtaW46c2VjcmV0");
}

TEST(HttpBasicAuth, TheSchemeIsCaseInsensitiveAndMayBeFollowedBySpaces) {
  EXPECT_EQ(parse_basic("bAsIc   YTpi"), (Credentials{"a", "b"}));
}

TEST(HttpBasicAuth, OtherSchemesAreIgnored) {
  for (const auto* field : {"", "Basic", "Bearer abc", "BasicYTpi", "Digest x"}) {
    EXPECT_EQ(parse_basic(field), std::nullopt) << field;
  }
}

TEST(HttpBasicAuth, MalformedCredentialsAreRefused) {
  for (const auto& field : {std::string("Basic "), std::string("Basic !!!!"), std::string("Basic YTp"),
                            "Basic " + to_base64("no colon"), std::string("Basic YTpi YTpi")}) {
    EXPECT_THROW(parse_basic(field), Error) << field;
  }
}

}  // namespace
}  // namespace divan::http
