#include "divan/index/triggers/definition.h"

#include <gmock/gmock.h>

#include "divan/base/error_testing.h"
#include "divan/base/json.h"
#include "divan/jobs/types.h"

namespace divan::index::triggers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Definition parse(const std::string& members) {
  return parse_definitions("_design/d", json::compact(R"({"triggers":{"t":{)" + members + "}}}")).at(0);
}
const std::string kJob = R"("job":{"type":"mail"})";

TEST(TriggerDefinition, Defaults) {
  const auto trigger = parse(kJob);
  EXPECT_THAT(trigger.on, ElementsAre(Event::created, Event::updated));
  EXPECT_FALSE(trigger.selector || trigger.from_start || trigger.tracks_documents());
  const auto job = trigger.job->fill("{}");
  EXPECT_EQ(job.type, "mail");
  EXPECT_FALSE(job.id);
  EXPECT_EQ(job.data, "{}");
}

TEST(TriggerDefinition, TracksDocumentsIfItMustDistinguishThem) {
  EXPECT_TRUE(parse(kJob + R"(,"on":["created"])").tracks_documents());
  EXPECT_TRUE(parse(kJob + R"(,"on":["created","updated","deleted"])").tracks_documents());
  EXPECT_FALSE(parse(kJob + R"(,"on":["updated","created"])").tracks_documents());
}

TEST(TriggerDefinition, TheDigestIsThatOfAllThatDeterminesTheJobs) {
  EXPECT_EQ(parse(kJob).digest, parse(kJob).digest);
  EXPECT_NE(parse(kJob).digest, parse(kJob + R"(,"since":"0")").digest);
  const auto with_lib = [](std::string_view lib) {
    const auto body = R"({"triggers":{"t":{"map":"f"}},"views":{"lib":{"m":")" + std::string(lib) + "\"}}}";
    return parse_definitions("_design/d", body).at(0).digest;
  };
  EXPECT_NE(with_lib("1"), with_lib("2"));
}

TEST(TriggerDefinition, OfAJob) {
  const auto trigger =
      parse(R"("job":{"type":"mail","id":"{_id}","data":{"a":"{a}"},"priority":"{p}","delay":1000})");
  const auto job = trigger.job->fill(R"({"_id":"x","a":[1],"p":-5})");
  EXPECT_EQ(job.id, "x");
  EXPECT_EQ(job.data, R"({"a":[1]})");
  EXPECT_EQ(job.priority, -5);
  EXPECT_EQ(job.delay, 1000);
  const auto error = [&](std::string_view document) {
    return error_of([&] { trigger.job->fill(document); });
  };
  EXPECT_THAT(error(R"({"_id":"x","a":1,"p":"1"})"), HasSubstr("expected an integer"));
  EXPECT_THAT(error(R"({"_id":"_x","a":1,"p":1})"), HasSubstr("Invalid id"));
  const std::string large = R"({"_id":"x","p":1,"a":")" + std::string(kMaxJobDataBytes, 'x') + "\"}";
  EXPECT_THAT(error(large), HasSubstr("exceeds"));
}

TEST(TriggerDefinition, WhatHasNoPlaceholdersIsCheckedAtOnce) {
  for (const auto* members : {R"("id":[])", R"("id":null)", R"("id":5)", R"("data":[])", R"("data":"text")",
                              R"("priority":"high")", R"("priority":{})", R"("delay":-5)", R"("id":"_a")",
                              R"("data":{"_trigger":1})", R"("data":{"\u005ftrigger":1})"}) {
    const auto error = error_of([&] { parse(R"("job":{"type":"m",)" + std::string(members) + "}"); });
    EXPECT_THAT(error, HasSubstr("invalid trigger `t`")) << members;
  }
  EXPECT_THAT(error_of([] { parse(R"("map":"","job":{"type":"m"})"); }), HasSubstr("either"));
}

TEST(TriggerDefinition, JobsOfFunctions) {
  const auto job = parse_job(R"({"type":"mail","id":"x","data":{"a":1},"priority":2,"delay":3})");
  EXPECT_EQ(job.id, "x");
  EXPECT_EQ(job.priority, 2);
  EXPECT_EQ(job.delay, 3);
  EXPECT_EQ(parse_job(R"({"type":"mail"})").data, "{}");
  for (const auto* bad :
       {"1", "{}", R"({"type":"_x"})", R"({"type":"m","data":[]})", R"({"type":"m","id":""})",
        R"({"type":"m","priority":1.5})", R"({"type":"m","delay":-1})", R"({"type":"m","delay":1e300})"})
    EXPECT_THAT(error_of([&] { parse_job(bad); }), HasSubstr("bad_request")) << bad;
}

TEST(TriggerDefinition, IsBoundedInNumber) {
  std::string body = R"({"triggers":{"0":{"job":{"type":"m"}})";
  for (std::size_t i = 1; i <= kMaxTriggers; ++i)
    body += ",\"" + std::to_string(i) + R"(":{"job":{"type":"m"}})";
  EXPECT_THAT(error_of([&] { parse_definitions("_design/d", body + "}}"); }), HasSubstr("more than 100"));
}

}  // namespace
}  // namespace divan::index::triggers
