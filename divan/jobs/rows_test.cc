// The bytes of a job's header, as stores have them. docs/keyspace.md
#include "divan/jobs/rows.h"

#include "divan/base/bytes.h"
#include "divan/jobs/testing.h"

namespace divan::jobs {
namespace {

using testing::HasSubstr;

// A running job that was resubmitted, of the layouts 3, 4 and 5.
constexpr std::string_view kLayout3 =
    "1503150113fa1603e81607d015031502026c6f636b00154d2713fe260272000277001603841603b614027b226e223a317d00026e"
    "6f"
    "000200150113fe271502";
constexpr std::string_view kLayout4 =
    "1504150113fa1603e81607d015031502026c6f636b00154d2713fe260272000277001603841603b614027b226e223a317d00026e"
    "6f"
    "000200150113fe271504027b226d61785f617474656d707473223a337d0016138815021502";

// With its data in the header.
constexpr std::string_view kLayout5 =
    "1505150113fa1603e81607d015031502026c6f636b00154d2713fe260272000277001603841603b614027b226e223a317d00026e"
    "6f"
    "00020014"
    "13fe"
    "27"
    "1504027b226d61785f617474656d707473223a337d0016138815021502"
    "027b7d00"
    "0200";

struct JobRows : QueueTest {
  static Job decode(std::string_view hex) { return decode_job("t", "a", *from_hex(hex)); }
  static std::string reason(std::string_view hex) {
    try {
      decode(hex);
      return "read";
    } catch (const Error& error) { return error.reason(); }
  }
};

void expect_common(const Job& job) {
  EXPECT_EQ(job.state, State::running);
  EXPECT_EQ(job.priority, -5);
  EXPECT_EQ(job.scheduled_at, 1000);
  EXPECT_EQ(job.due_at, 2000);
  EXPECT_EQ(job.attempt, 3);
  EXPECT_EQ(job.failures, 2);
  EXPECT_EQ(job.lock, "lock");
  EXPECT_EQ(job.epoch, 77);
  EXPECT_TRUE(job.resubmit);
  EXPECT_EQ(job.resubmit_at, kNextTick);
  EXPECT_FALSE(job.cancel);
  EXPECT_EQ(job.worker_role, "r");
  EXPECT_EQ(job.worker_id, "w");
  EXPECT_EQ(job.added_at, 900);
  EXPECT_EQ(job.started_at, 950);
  EXPECT_EQ(job.finished_at, 0);
  EXPECT_EQ(job.progress, R"({"n":1})");
  EXPECT_EQ(job.last_error, "no");
  EXPECT_EQ(job.schedule, "");
  EXPECT_EQ(job.next_chunks, kSameData);
  EXPECT_TRUE(job.swapped);
  EXPECT_EQ(job.history, 2);
  EXPECT_FALSE(job.activity);
}

TEST_F(JobRows, HeadersOfLayout3AreRead) {
  const Job job = decode(kLayout3);
  expect_common(job);
  EXPECT_EQ(job.data_chunks, 1);
  EXPECT_EQ(job.lost, 0);
  EXPECT_EQ(job.limits, "");
  EXPECT_EQ(job.deadline, 0);
  EXPECT_EQ(job.result_chunks, 0);
  EXPECT_FALSE(job.old_entry);
  // Its entry among the ended jobs has the older form.
  const Job failed =
      decode("1503150314141603e81501150102001507261426020002001603841603b61603de0200026e6f00020014142614");
  EXPECT_EQ(failed.state, State::failed);
  EXPECT_TRUE(failed.old_entry);
}

void expect_layout4(const Job& job) {
  expect_common(job);
  EXPECT_EQ(job.lost, 4);
  EXPECT_EQ(job.limits, R"({"max_attempts":3})");
  EXPECT_EQ(job.deadline, 5000);
  EXPECT_EQ(job.result_chunks, 2);
}

TEST_F(JobRows, HeadersOfLayout4AreRead) {
  const Job job = decode(kLayout4);
  expect_layout4(job);
  EXPECT_EQ(job.data_chunks, 1);
  EXPECT_EQ(job.data + job.next_data, "");
}

TEST_F(JobRows, HeadersOfLayout5AreReadAndWrittenAsTheyAre) {
  const Job job = decode(kLayout5);
  expect_layout4(job);
  EXPECT_EQ(job.data_chunks, 0);
  EXPECT_EQ(job.data, "{}");
  EXPECT_EQ(job.next_data, "");
  const auto written = in_tx([&](kv::Transaction& tx) {
    link(tx, job);
    auto header = tx.get(JobKey("job").string("t").string("a").key());
    unlink(tx, job);
    return to_hex(header.value());
  });
  EXPECT_EQ(written, kLayout5);
  // Data in the header and in rows.
  std::string both(kLayout5);
  both.replace(both.find("0002001413fe27"), 14, "000200150113fe27");
  EXPECT_THAT(reason(both), HasSubstr("is damaged"));
}

TEST_F(JobRows, HeadersOfANewerLayoutAreReported) {
  std::string newer(kLayout4);
  newer[3] = '7';
  EXPECT_THAT(reason(newer), HasSubstr("has layout 7: it was written by a newer version of Divan"));
  EXPECT_TRUE(is_of_newer_layout(*from_hex(newer)));
  EXPECT_FALSE(is_of_newer_layout(*from_hex(kLayout4)));
  EXPECT_FALSE(is_of_newer_layout("?"));
  newer[3] = '2';
  EXPECT_THAT(reason(newer), HasSubstr("is damaged"));
}

TEST_F(JobRows, InvalidLimitsAreDamage) {
  for (const char* limits : {"027b7d7d00", "027b2274696d656f7574223a317d00"}) {  // `{}}` and `{"timeout":1}`
    std::string header(kLayout4);
    const std::string_view good = "027b226d61785f617474656d707473223a337d00";
    header.replace(header.find(good), good.size(), limits);
    EXPECT_THAT(reason(header), HasSubstr("is damaged"));
  }
}

}  // namespace
}  // namespace divan::jobs
