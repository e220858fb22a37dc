#include "divan/http/url.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "divan/base/error.h"

namespace divan::http {
namespace {

using namespace std::string_literals;

using Parameters = std::vector<QueryParameter>;

TEST(HttpUrl, PercentDecoding) {
  EXPECT_EQ(percent_decode("a%20b%2fc%2F+"), "a b/c/+");
  EXPECT_EQ(percent_decode("%00%ff"), "\0\xff"s);
  EXPECT_EQ(percent_decode(""), "");
}

TEST(HttpUrl, MalformedEscapesAreRejected) {
  for (const auto* text : {"%", "%1", "a%", "a%2", "%zz", "%2g", "%%20", "% 1", "%-1"}) {
    EXPECT_THROW(percent_decode(text), Error) << text;
    EXPECT_THROW(parse_query(text), Error) << text;
    EXPECT_THROW(parse_query("a=" + std::string(text)), Error) << text;
  }
  try {
    percent_decode("%");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.name(), "bad_request");
  }
}

TEST(HttpUrl, AQueryIsAListInItsOrder) {
  EXPECT_EQ(parse_query("startkey=%22a%22&limit=10&x&limit=11"),
            (Parameters{{"startkey", "\"a\""}, {"limit", "10"}, {"x", ""}, {"limit", "11"}}));
  EXPECT_EQ(parse_query("a+b=c+d%2B&=v&&e=f=g&"), (Parameters{{"a b", "c d+"}, {"", "v"}, {"e", "f=g"}}));
  EXPECT_EQ(parse_query(""), Parameters{});
  EXPECT_EQ(parse_query("a%26b=%3D"), (Parameters{{"a&b", "="}}));
}

TEST(HttpUrl, EncodingLeavesOnlyUnreservedCharacters) {
  EXPECT_EQ(percent_encode("aZ0-._~"), "aZ0-._~");
  EXPECT_EQ(percent_encode("_design/x y+\xc3\xa9"), "_design%2Fx%20y%2B%C3%A9");
}

TEST(HttpUrl, EncodingRoundTrips) {
  EXPECT_TRUE(rc::check("round trip", [](const std::string& name, const std::string& value) {
    RC_ASSERT(percent_decode(percent_encode(name)) == name);
    RC_PRE(!name.empty() || !value.empty());
    const auto query = percent_encode(name) + "=" + percent_encode(value);
    RC_ASSERT(parse_query(query) == (Parameters{{name, value}}));
  }));
}

}  // namespace
}  // namespace divan::http
