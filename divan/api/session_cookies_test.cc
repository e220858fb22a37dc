#include "divan/api/session_cookies.h"

#include <gmock/gmock.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::api {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kNow = 1'700'000'000;
constexpr std::int64_t kTimeout = 600;

struct SessionCookiesTest : testing::Test {
  const SessionCookies cookies{"secret"};

  static std::string field(const std::string& value) { return "AuthSession=" + value; }
  Session session(const std::string& name = "ann", std::int64_t created = kNow) const {
    return *parse_session(field(cookies.make(name, created, "password")));
  }
};

TEST_F(SessionCookiesTest, ACookieNamesItsUser) {
  for (const std::string name : {"ann", "a", "\xc3\xa4:;=\" ", "org.couchdb.user:x"}) {
    const auto made = session(name);
    EXPECT_EQ(made.name, name);
    EXPECT_EQ(made.created_s, kNow);
    EXPECT_TRUE(cookies.is_valid(made, "password", kNow, kTimeout));
  }
}

TEST_F(SessionCookiesTest, AChangedCookieIsNotValid) {
  const std::string value = cookies.make("ann", kNow, "password");
  for (std::size_t i = 0; i < value.size(); ++i) {
    for (const char c : {'A', 'z', '-', '_', '0'}) {
      std::string changed = value;
      changed[i] = c;
      if (changed == value) continue;
      try {
        const auto read = parse_session(field(changed));
        // The last character has bits that are not part of the name.
        const bool same =
            read && read->name == "ann" && read->created_s == kNow && read->code == session().code;
        EXPECT_TRUE(same || !cookies.is_valid(*read, "password", kNow, kTimeout)) << i << c;
      } catch (const Error& error) { EXPECT_EQ(error.status(), 400); }
    }
  }
}

TEST_F(SessionCookiesTest, ACookieIsValidForItsSecretAndPassword) {
  EXPECT_FALSE(cookies.is_valid(session(), "other", kNow, kTimeout));
  EXPECT_FALSE(SessionCookies("other").is_valid(session(), "password", kNow, kTimeout));
}

TEST_F(SessionCookiesTest, ACookieEnds) {
  EXPECT_TRUE(cookies.is_valid(session(), "password", kNow + kTimeout - 1, kTimeout));
  EXPECT_FALSE(cookies.is_valid(session(), "password", kNow + kTimeout, kTimeout));
  // The clock was set back.
  EXPECT_TRUE(cookies.is_valid(session(), "password", kNow - kTimeout + 1, kTimeout));
  EXPECT_FALSE(cookies.is_valid(session(), "password", kNow - kTimeout, kTimeout));
}

TEST_F(SessionCookiesTest, OtherCookiesAreIgnored) {
  const std::string value = cookies.make("ann", kNow, "password");
  EXPECT_EQ(parse_session("a=b;  AuthSession=" + value + " ; c")->name, "ann");
  EXPECT_EQ(parse_session("AuthSession=\"" + value + "\"")->name, "ann");
  for (const auto* const none : {"", "a=b", "AuthSession=", "AuthSession", "XAuthSession=a", "authsession=a"})
    EXPECT_EQ(parse_session(none).has_value(), false) << none;
}

TEST_F(SessionCookiesTest, AMalformedCookieIsAnError) {
  const std::string short_one(40, 'x');  // without a name
  for (const std::string& bad :
       {std::string("?"), std::string("YQ"), std::string("YWJj+/=="), to_base64(short_one)})
    EXPECT_THROW(parse_session(field(bad)), Error) << bad;
}

TEST_F(SessionCookiesTest, AttributesAreThoseOfTheSettings) {
  Config config;
  EXPECT_EQ(session_cookie_field("v", config, false, 784111177),
            "AuthSession=v; Path=/; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=600; HttpOnly");
  EXPECT_EQ(session_cookie_field("", config, false, 0), "AuthSession=; Path=/; Max-Age=0; HttpOnly");
  config.override_with("chttpd_auth", "allow_persistent_cookies", "false");
  config.override_with("chttpd_auth", "same_site", "strict");
  config.override_with("chttpd_auth", "cookie_domain", "example.com");
  EXPECT_EQ(session_cookie_field("v", config, true, 0),
            "AuthSession=v; Path=/; HttpOnly; Secure; Domain=example.com; SameSite=strict");
  EXPECT_THAT(session_cookie_field("", config, true, 0), HasSubstr("Max-Age=0"));
  EXPECT_THROW(check_cookie_domain("a;b"), Error);
  EXPECT_NO_THROW(check_cookie_domain("a-1.example"));
}

}  // namespace
}  // namespace divan::api
