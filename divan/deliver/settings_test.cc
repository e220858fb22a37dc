#include "divan/deliver/settings.h"

#include <gmock/gmock.h>

#include "divan/base/error_testing.h"

namespace divan::deliver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kSecretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr const char* kSecretB = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

std::string with(const std::string& members) { return R"({"url":"https://Example.com/x",)" + members + "}"; }
std::string error_with(const std::string& members) {
  return error_of([&] { parse_settings(with(members)); });
}

TEST(DeliverSettings, TheUrlSufficesAndTheOthersHaveDefaults) {
  const auto settings = parse_settings(R"({"url":"https://Example.com/x"})");
  EXPECT_EQ(settings.host, "example.com");
  EXPECT_EQ(settings.origin, "https://example.com:443");
  EXPECT_EQ(settings.method, "POST");
  EXPECT_EQ(settings.timeout, std::chrono::seconds(30));
  EXPECT_EQ(settings.concurrency, 10u);
  EXPECT_FALSE(settings.per_second);
  EXPECT_FALSE(settings.keeps_result);
  EXPECT_TRUE(settings.secrets.empty());
}

TEST(DeliverSettings, AllMembers) {
  const auto settings =
      parse_settings(with(R"("method":"PUT","headers":{"X-Key":"a b"},"timeout":100,"concurrency":1000,
              "rate":{"per_second":0.5},"secret":")" +
                          std::string(kSecretA) + R"(","fail_on":[400,422],"result":true)"));
  EXPECT_EQ(settings.method, "PUT");
  EXPECT_THAT(settings.headers, ElementsAre(Pair("X-Key", "a b")));
  EXPECT_EQ(settings.timeout, std::chrono::milliseconds(100));
  EXPECT_EQ(settings.concurrency, 1000u);
  EXPECT_EQ(settings.per_second, 0.5);
  EXPECT_THAT(settings.secrets, ElementsAre(kSecretA));
  EXPECT_THAT(settings.fail_on, ElementsAre(400, 422));
  EXPECT_TRUE(settings.keeps_result);
}

TEST(DeliverSettings, InvalidMembersAreNamed) {
  EXPECT_THAT(error_of([] { parse_settings("{}"); }), HasSubstr("`url`"));
  for (const auto* url : {"", "example.com", "ftp://example.com", "http://", "http://a b/", "http://e.com/#f",
                          "http://user@example.com/", "http://:pass@example.com/"}) {
    EXPECT_THAT(error_of([&] { parse_settings(R"({"url":")" + std::string(url) + "\"}"); }),
                HasSubstr("nvalid"))
        << url;
  }
  EXPECT_THAT(error_with(R"("method":"GET")"), HasSubstr("`deliver.method`"));
  EXPECT_THAT(error_with(R"("timeout":99)"), HasSubstr("`deliver.timeout`"));
  EXPECT_THAT(error_with(R"("timeout":300001)"), HasSubstr("`deliver.timeout`"));
  EXPECT_THAT(error_with(R"("concurrency":0)"), HasSubstr("`deliver.concurrency`"));
  EXPECT_THAT(error_with(R"("concurrency":1.5)"), HasSubstr("`deliver.concurrency`"));
  EXPECT_THAT(error_with(R"("rate":5)"), HasSubstr("`deliver.rate`"));
  EXPECT_THAT(error_with(R"("rate":{"per_second":0})"), HasSubstr("`deliver.rate`"));
  EXPECT_THAT(error_with(R"("rate":{"per_second":1,"x":1})"), HasSubstr("`deliver.rate`"));
  EXPECT_THAT(error_with(R"("fail_on":[200])"), HasSubstr("`deliver.fail_on`"));
  EXPECT_THAT(error_with(R"("result":1)"), HasSubstr("`deliver.result`"));
  EXPECT_THAT(error_with(R"("secret":"abc")"), HasSubstr("`deliver.secret`"));
  EXPECT_THAT(error_with(R"("secret":[])"), HasSubstr("`deliver.secret`"));
  EXPECT_THAT(error_with(R"("nonsense":1)"), HasSubstr("`nonsense`"));
}

TEST(DeliverSettings, HeaderFieldsCannotBreakTheRequest) {
  for (const auto* name : {"", "a b", "a:", "Host", "Content-Length", "webhook-id", "Divan-Lock", "x\\n"}) {
    EXPECT_NE(error_with(R"("headers":{")" + std::string(name) + R"(":"v"})"), "no error") << name;
  }
  for (const auto* value : {"", " a", "a ", "a\\r\\nb: c", "\\u0000", "\\u007f", "\xc3\xa4"}) {
    EXPECT_NE(error_with(R"("headers":{"x":")" + std::string(value) + "\"}"), "no error") << value;
  }
  EXPECT_THAT(error_with(R"("headers":{"A":"1","a":"2"})"), HasSubstr("twice"));
}

TEST(DeliverSettings, ErrorsDoNotShowSecrets) {
  EXPECT_THAT(error_with(R"("secret":"whsec_guess-me")"), Not(HasSubstr("guess-me")));
  EXPECT_THAT(error_with(R"("headers":{"x":"guess-me\u0000"})"), Not(HasSubstr("guess-me")));
}

TEST(DeliverSettings, AChangeKeepsOtherMembers) {
  const auto first = change_settings("", with(R"("timeout":5000,"result":true)"));
  const auto changed = parse_settings(change_settings(first, R"({"concurrency":2,"timeout":null})"));
  EXPECT_EQ(changed.url, "https://Example.com/x");
  EXPECT_EQ(changed.timeout, std::chrono::seconds(30));
  EXPECT_EQ(changed.concurrency, 2u);
  EXPECT_TRUE(changed.keeps_result);
  EXPECT_NE(error_of([&] { change_settings(first, R"({"url":null})"); }), "no error");
  EXPECT_NE(error_of([&] { change_settings("", R"({"concurrency":2})"); }), "no error");
}

TEST(DeliverSettings, WhatIsShownHasNoSecretsAndCanBeWrittenBack) {
  const auto stored = change_settings("", with(R"("headers":{"Authorization":"Bearer t"},"secret":[")" +
                                               std::string(kSecretA) + "\",\"" + kSecretB + "\"]"));
  const auto shown = shown_settings(stored);
  EXPECT_THAT(shown, Not(AnyOf(HasSubstr("Bearer"), HasSubstr("whsec_"))));
  EXPECT_EQ(change_settings(stored, shown), stored);
  // Another value for one of them, and names in another case.
  const auto changed = parse_settings(
      change_settings(stored, R"({"headers":{"authorization":"***","x":"y"},"secret":["***","***"]})"));
  EXPECT_THAT(changed.headers, ElementsAre(Pair("authorization", "Bearer t"), Pair("x", "y")));
  EXPECT_THAT(changed.secrets, ElementsAre(kSecretA, kSecretB));
  EXPECT_THAT(error_of([&] { change_settings(stored, R"({"secret":["***"]})"); }), HasSubstr("fewer"));
  EXPECT_THAT(parse_settings(change_settings(stored, R"({"secret":"***"})")).secrets,
              ElementsAre(kSecretA, kSecretB));
}

TEST(DeliverSettings, ThereMustBeAValueToKeep) {
  const auto stored = change_settings("", with(R"("timeout":5000)"));
  EXPECT_THAT(error_of([&] { change_settings(stored, R"({"secret":"***"})"); }),
              HasSubstr("`deliver.secret`"));
  EXPECT_THAT(error_of([&] { change_settings(stored, R"({"headers":{"x":"***"}})"); }),
              HasSubstr("`deliver.headers.x`"));
}

TEST(DeliverSettings, OthersSeeTheHost) {
  EXPECT_EQ(shown_host(with(R"("timeout":5000)")), R"({"host":"example.com"})");
}

}  // namespace
}  // namespace divan::deliver
