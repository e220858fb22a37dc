#include "divan/api/active_tasks.h"

#include <fmt/core.h>

#include "divan/api/testing.h"
#include "divan/docs/writer.h"
#include "divan/jobs/attempts.h"

namespace divan::api {
namespace {

using testing::HasSubstr;

struct ActiveTasks : Streams {
  // The task of a running job with this progress.
  std::string task(const std::string& progress) {
    store->run([&](kv::Transaction& tx) {
      queue.set_type(tx, "views", {});
      queue.add(tx, "views", "a", "{}");
    });
    const std::vector<std::string> types = {"views"};
    const auto accepted = store->run([&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {}); });
    store->run([&](kv::Transaction& tx) {
      jobs::update(queue, tx, accepted.jobs.front().attempt(), std::nullopt, progress);
    });
    return store->run([&](kv::Transaction& tx) {
      std::string out;
      append_build_task(out, context, tx, *queue.find(tx, "views", "a"));
      return out;
    });
  }
};

// A client with the job's lock can report any progress.
TEST_F(ActiveTasks, InvalidNumbers) {
  const auto most =
      task(fmt::format(R"({{"started_on":{0},"changes_done":{0},"total_changes":{0}}})", INT64_MAX));
  EXPECT_THAT(most, HasSubstr(R"("progress":100,)"));
  EXPECT_THAT(most, testing::Not(HasSubstr(":-")));
}

TEST_F(ActiveTasks, NegativeNumbersAreIgnored) {
  const auto least = task(fmt::format(R"({{"started_on":{},"changes_done":{}}})", INT64_MAX, INT64_MIN));
  EXPECT_THAT(least, HasSubstr(R"("changes_done":0,)"));
  EXPECT_THAT(least, testing::Not(HasSubstr(":-")));
}

TEST_F(ActiveTasks, ACompaction) {
  const auto database = store->run([&](kv::Transaction& tx) { return catalog.create(tx, "db"); });
  std::vector<docs::IncomingDocument> documents(3);
  for (auto& document : documents) document.body = "{}";
  docs::bulk_edit(*store, catalog, "db", documents, rng);
  compactor.request(database);
  const auto running = compactor.running();
  ASSERT_EQ(running.size(), 1u);
  std::string out;
  store->run([&](kv::Transaction& tx) {
    out.clear();
    append_compaction_task(out, context, tx, running.front());
  });
  EXPECT_THAT(out, HasSubstr(R"("type":"database_compaction","database":"db")"));
  EXPECT_THAT(out, HasSubstr(R"("changes_done":0,"total_changes":3,"progress":0,)"));
}

}  // namespace
}  // namespace divan::api
