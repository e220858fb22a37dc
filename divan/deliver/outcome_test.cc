#include "divan/deliver/outcome.h"

#include <gmock/gmock.h>

namespace divan::deliver {
namespace {

using http_client::AsyncClient;
using Kind = Outcome::Kind;
using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

struct OutcomeTest : testing::Test {
  Settings settings;

  Outcome of(int status, const std::string& body = "", std::optional<seconds> retry_after = {}) {
    AsyncClient::Result result;
    result.response.status = status;
    result.response.body = body;
    result.response.retry_after = retry_after;
    return outcome_of(result, settings, "example.com");
  }
};

TEST_F(OutcomeTest, StatusesOfSuccess) {
  for (const int status : {200, 201, 203, 204, 299}) {
    EXPECT_EQ(of(status).kind, Kind::finish) << status;
    EXPECT_EQ(of(status).progress, "{\"status\":" + std::to_string(status) + "}");
  }
  EXPECT_EQ(of(202).kind, Kind::detach);
  EXPECT_EQ(of(202).progress, R"({"status":202})");
}

TEST_F(OutcomeTest, StatusesOfFailure) {
  settings.fail_on = {400, 503};
  for (const int status : {409, 410, 400, 503}) EXPECT_EQ(of(status).kind, Kind::fail_permanently) << status;
  for (const int status : {100, 301, 302, 307, 401, 404, 429, 500, 502, 504})
    EXPECT_EQ(of(status).kind, Kind::fail) << status;
  for (const int status : {404, 409, 429}) EXPECT_FALSE(of(status).is_receiver_down) << status;
  for (const int status : {500, 502, 503}) EXPECT_TRUE(of(status).is_receiver_down) << status;
}

TEST_F(OutcomeTest, RetryAfterWaitsBetweenASecondAndADay) {
  for (const int status : {429, 503}) {
    EXPECT_EQ(of(status, "", seconds(7)).kind, Kind::release);
    EXPECT_EQ(of(status, "", seconds(7)).pause, seconds(7));
    EXPECT_EQ(of(status, "", seconds(0)).pause, seconds(1));
    EXPECT_EQ(of(status, "", seconds(10'000'000)).pause, hours(24));
    EXPECT_FALSE(of(status, "", seconds(7)).is_receiver_down);
  }
  EXPECT_EQ(of(500, "", seconds(7)).kind, Kind::fail);
}

TEST_F(OutcomeTest, ErrorsNameTheHostAndShowTheBeginningOfTheResponse) {
  EXPECT_EQ(of(500).error, "example.com responds with 500.");
  EXPECT_EQ(of(500, "out of order").error, "example.com responds with 500: out of order");
  EXPECT_LT(of(500, std::string(10'000, 'x')).error.size(), 300u);
  EXPECT_EQ(of(500, "\xff\xfe").error, "example.com responds with 500: (not UTF-8)");
  EXPECT_THAT(of(500, "a\x1b[31mb").error, Not(HasSubstr("\x1b")));
}

TEST_F(OutcomeTest, AResultIsStoredIfItIsWantedAndJson) {
  EXPECT_FALSE(of(200, R"({"a": 1})").result);
  settings.keeps_result = true;
  EXPECT_EQ(of(200, R"({"a": 1})").result, R"({"a":1})");
  EXPECT_EQ(of(200, " 7 ").result, "7");
  for (const auto* body : {"", "<html>", "{", "\"\xff\""}) {
    const auto outcome = of(200, body);
    EXPECT_EQ(outcome.kind, Kind::finish);
    EXPECT_FALSE(outcome.result) << body;
    EXPECT_THAT(outcome.progress, HasSubstr("no_result"));
  }
  AsyncClient::Result truncated;
  truncated.response = {.status = 200, .body = "[1]"};
  truncated.is_too_large = true;
  EXPECT_FALSE(outcome_of(truncated, settings, "example.com").result);
  truncated.is_too_large = false;
  truncated.exceeds_memory = true;
  const auto outcome = outcome_of(truncated, settings, "example.com");
  EXPECT_FALSE(outcome.result);
  EXPECT_THAT(outcome.progress, HasSubstr("memory"));
}

TEST_F(OutcomeTest, ErrorsOfTheConnection) {
  const AsyncClient::Result result{
      .error = std::make_exception_ptr(Error(503, "connection_failed", "example.com: refused."))};
  const auto outcome = outcome_of(result, settings, "example.com");
  EXPECT_EQ(outcome.kind, Kind::fail);
  EXPECT_EQ(outcome.error, "example.com: refused.");
  EXPECT_TRUE(outcome.is_receiver_down);
}

}  // namespace
}  // namespace divan::deliver
