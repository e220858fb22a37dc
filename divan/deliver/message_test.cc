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

TEST(Message, EachRunOfAPeriodicJobHasItsOwnId) {
  auto job = accepted();
  job.job.schedule = "{}";
  job.job.scheduled_at = 60'000;
  const auto id = message_id(job);
  job.job.scheduled_at = 0;
  EXPECT_EQ(message_id(job), id) << "resubmitted after a failure";
  job.job.finished_at = 60'500;
  EXPECT_NE(message_id(job), id) << "the next run";
}

TEST(Message, TheRequest) {
  auto settings = parse_settings(
      R"({"url":"https://example.com/x?y","method":"PUT","timeout":700,
          "headers":{"X-Key":"k","content-type":"application/cloudevents+json"},
          "secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})");
  auto job = accepted(3);
  const auto id = message_id(job);
  const auto data = job.data;
  const auto request = make_request(job, settings, 1'614'265'330'999);
  EXPECT_EQ(request.url, "https://example.com/x?y");
  EXPECT_EQ(request.shown_url, "example.com");
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.body, R"({"n":1})");
  EXPECT_EQ(request.timeout, std::chrono::milliseconds(700));
  EXPECT_EQ(request.content_type, "application/cloudevents+json");
  const auto& headers = request.headers;
  EXPECT_THAT(headers, Contains(Pair("webhook-id", id)));
  EXPECT_THAT(headers, Contains(Pair("webhook-timestamp", "1614265330")));
  EXPECT_THAT(headers, Contains(Pair("webhook-signature", sign(settings.secrets, id, 1'614'265'330, data))));
  EXPECT_THAT(headers, Contains(Pair("divan-type", "mail%2F%C3%A4")));
  EXPECT_THAT(headers, Contains(Pair("divan-id", "a%20b")));
  EXPECT_THAT(headers, Contains(Pair("divan-attempt", "3")));
  EXPECT_THAT(headers, Contains(Pair("divan-epoch", "77")));
  EXPECT_THAT(headers, Contains(Pair("divan-lock", "l0ck")));
  EXPECT_THAT(headers, Contains(Pair("X-Key", "k")));
}

TEST(Message, ARedirectToAnotherOriginLeavesOutWhatIsMeantForTheFirst) {
  const auto settings = parse_settings(R"({"url":"https://example.com/x","headers":{"X-Key":"k"}})");
  auto job = accepted();
  const auto request = make_request(job, settings, 0);
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
  for (const auto* url : {"file:///etc/passwd", "https://user:pw@example.com/"})
    EXPECT_NE(error_of([&] { redirected(request, settings, url); }), "no error") << url;
  EXPECT_EQ(redirected(request, settings, "https://example.com/y#part").url, "https://example.com/y");
}

TEST(Message, ARequestEndsAtTheDeadlineOfItsAttempt) {
  const auto settings = parse_settings(R"({"url":"https://example.com/x","timeout":5000})");
  for (const auto& [deadline, expected] : std::vector<std::pair<std::int64_t, int>>{
           {0, 5000}, {1'100'000, 5000}, {1'000'700, 700}, {999'000, 1}}) {
    auto job = accepted();
    job.job.deadline = deadline;
    EXPECT_EQ(make_request(job, settings, 1'000'000).timeout, std::chrono::milliseconds(expected))
        << deadline;
  }
}

TEST(Message, OwnFieldsReplaceThoseOfTheServer) {
  const auto settings = parse_settings(R"({"url":"https://example.com/x","headers":{"user-agent":"mine"}})");
  auto job = accepted();
  const auto request = make_request(job, settings, 0);
  EXPECT_THAT(request.headers, Contains(Pair("user-agent", "mine")));
  EXPECT_THAT(request.headers, Not(Contains(Key("User-Agent"))));
}

}  // namespace
}  // namespace divan::deliver
