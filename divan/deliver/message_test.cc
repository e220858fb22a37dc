#include "divan/deliver/message.h"

#include <gmock/gmock.h>

#include "divan/base/error_testing.h"
#include "divan/deliver/signature.h"

namespace divan::deliver {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

jobs::AcceptedJob accepted(std::int64_t attempt = 1, std::int64_t failures = 0, std::int64_t lost = 0) {
  jobs::AcceptedJob job{.job = {.type = "mail/\xc3\xa4", .id = "a b"}, .data = R"({"n":1})"};
  job.job.attempt = attempt;
  job.job.failures = failures;
  job.job.lost = lost;
  job.job.added_at = 5000;
  job.job.epoch = 77;
  job.job.lock = "l0ck";
  return job;
}

TEST(Message, TheIdIsThatOfTheRunAndItsData) {
  const auto id = message_id(accepted());
  EXPECT_EQ(message_id(accepted(2, 1)), id) << "after a failure";
  EXPECT_EQ(message_id(accepted(3, 1, 1)), id) << "and a lost attempt";
  EXPECT_NE(message_id(accepted(2)), id) << "the next run";
  auto other = accepted();
  other.data = R"({"n":2})";
  EXPECT_NE(message_id(other), id);
  other = accepted();
  other.job.added_at = 6000;
  EXPECT_NE(message_id(other), id);
  other = accepted();
  other.job.type = "mail";
  EXPECT_NE(message_id(other), id);
}

TEST(Message, EachTickOfAPeriodicJobHasItsOwnId) {
  auto first = accepted(), second = accepted();
  first.job.schedule = second.job.schedule = "{}";
  first.job.scheduled_at = 60'000;
  second.job.scheduled_at = 120'000;
  EXPECT_NE(message_id(first), message_id(second));
}

TEST(Message, TheRequest) {
  auto settings = parse_settings(
      R"({"url":"https://example.com/x?y","method":"PUT","timeout":700,
          "headers":{"X-Key":"k","content-type":"application/cloudevents+json"},
          "secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})");
  const auto job = accepted(3);
  const auto request = make_request(job, settings, 1'614'265'330'999);
  EXPECT_EQ(request.url, "https://example.com/x?y");
  EXPECT_EQ(request.shown_url, "example.com");
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.body, R"({"n":1})");
  EXPECT_EQ(request.timeout, std::chrono::milliseconds(700));
  EXPECT_EQ(request.content_type, "application/cloudevents+json");
  const auto& headers = request.headers;
  EXPECT_THAT(headers, Contains(Pair("webhook-id", message_id(job))));
  EXPECT_THAT(headers, Contains(Pair("webhook-timestamp", "1614265330")));
  EXPECT_THAT(headers, Contains(Pair("webhook-signature",
                                     sign(settings.secrets, message_id(job), 1'614'265'330, job.data))));
  EXPECT_THAT(headers, Contains(Pair("divan-type", "mail%2F%C3%A4")));
  EXPECT_THAT(headers, Contains(Pair("divan-id", "a%20b")));
  EXPECT_THAT(headers, Contains(Pair("divan-attempt", "3")));
  EXPECT_THAT(headers, Contains(Pair("divan-epoch", "77")));
  EXPECT_THAT(headers, Contains(Pair("divan-lock", "l0ck")));
  EXPECT_THAT(headers, Contains(Pair("X-Key", "k")));
}

TEST(Message, ARedirectToAnotherOriginLeavesOutWhatIsMeantForTheFirst) {
  const auto settings = parse_settings(R"({"url":"https://example.com/x","headers":{"X-Key":"k"}})");
  const auto request = make_request(accepted(), settings, 0);
  const auto same = redirected(request, settings, "https://EXAMPLE.com:443/y");
  EXPECT_EQ(same.url, "https://EXAMPLE.com:443/y");
  EXPECT_THAT(same.headers, Contains(Key("X-Key")));
  for (const auto* url : {"http://example.com/x", "https://example.com:444/x", "https://other.com/x"}) {
    const auto other = redirected(request, settings, url);
    EXPECT_THAT(other.headers, Not(Contains(Key("X-Key")))) << url;
    EXPECT_THAT(other.headers, Not(Contains(Key("divan-lock")))) << url;
    EXPECT_THAT(other.headers, Contains(Key("webhook-id"))) << url;
    EXPECT_EQ(other.body, request.body);
    // They are not restored by a redirect back.
    EXPECT_THAT(redirected(other, settings, "https://example.com/x").headers, Not(Contains(Key("X-Key"))));
  }
  EXPECT_NE(error_of([&] { redirected(request, settings, "file:///etc/passwd"); }), "no error");
}

}  // namespace
}  // namespace divan::deliver
