// What tests of ken share.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/index/views/view_kind.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/listing.h"
#include "divan/ken/ken.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::ken {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Views, and a function that is called whenever ken reads a design document.
class WatchedKind final : public index::Kind {
 public:
  explicit WatchedKind(js::Pool& pool) : views_(pool) {}
  std::string_view name() const override { return views_.name(); }
  std::vector<index::IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                       const docs::Database* database) const override {
    if (on_read) on_read(design_id);
    return views_.indexes(design_id, body, database);
  }
  void check(const std::string& design_id, std::string_view body,
             const docs::Checkpoint& checkpoint) const override {
    views_.check(design_id, body, checkpoint);
  }

  std::function<void(const std::string& design_id)> on_read;

 private:
  const index::views::ViewKind views_;
};

// A real store and queue, and a manual clock. Tests call the steps of ken themselves, instead of its thread,
// and run the jobs.
struct KenTest : testing::Test {
  SystemClock real;
  ManualClock clock;
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  js::Pool pool{{.binary = DIVAN_JS_BINARY, .processes = 1}, real};
  index::Kinds kinds;
  WatchedKind* kind = nullptr;
  Config config;
  std::unique_ptr<Ken> ken;

  void SetUp() override {
    auto watched = std::make_unique<WatchedKind>(pool);
    kind = watched.get();
    kinds.push_back(std::move(watched));
    index::declare_builds(queue, *store, kinds);
    restart();
    create("db");
  }
  // A new ken, without the state of the old one.
  void restart() { ken = std::make_unique<Ken>(*store, catalog, queue, kinds, clock, rng, config); }

  void create(std::string_view name) {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name); });
  }
  void put(std::string_view json, std::string_view database = "db") {
    std::vector documents{docs::parse_document(json::compact(json))};
    const auto result = docs::bulk_edit(*store, catalog, database, documents, rng).front();
    EXPECT_FALSE(result.error) << result.error->what();
  }
  // A design document with one view, unlike those of other numbers.
  static std::string design(int number, std::string_view rest = "") {
    return fmt::format(
        R"({{"_id":"_design/{0}","views":{{"v":{{"map":"function(doc) {{ emit({0}); }}"}}}}{1}}})", number,
        rest);
  }
  void put_design(int number, std::string_view database = "db", std::string_view rest = "") {
    put(design(number, rest), database);
  }
  void put_documents(int count, std::string_view database = "db") {
    std::vector<docs::IncomingDocument> documents;
    for (int i = 0; i < count; ++i) documents.push_back(docs::parse_document("{}"));
    docs::bulk_edit(*store, catalog, database, documents, rng);
  }

  // What ken's thread would do now. (The second round is for databases that the first has queued again.)
  void settle() {
    for (int round = 0; round < 2; ++round) {
      while (ken->step()) {}
      clock.advance(milliseconds(50));
    }
  }
  void scan(const std::string& database = "db") {
    ken->add(database);
    settle();
  }
  // Advances the clock to `time` after `start`, and makes the steps that are due.
  void until(MonotonicTime start, Duration time) {
    clock.advance(start + time - clock.now());
    while (ken->step()) {}
  }

  std::vector<jobs::Job> all_jobs() {
    return store->run(
        [&](kv::Transaction& tx) { return list_jobs(queue, tx, "views", {.limit = 1000}).jobs; });
  }
  // The names of design documents whose jobs are pending.
  std::vector<std::string> pending() {
    return store->run([&](kv::Transaction& tx) {
      std::vector<std::string> found;
      for (const auto& job :
           list_jobs(queue, tx, "views", {.state = jobs::State::pending, .limit = 1000}).jobs)
        found.push_back(index::BuildRequest::parse(queue.data(tx, job)).design_document);
      std::sort(found.begin(), found.end());
      return found;
    });
  }
  std::vector<jobs::AcceptedJob> accept(std::size_t limit = 1) {
    const std::vector<std::string> types{"views"};
    return store->run(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = limit}).jobs; });
  }
  // What a builder writes at its end: the index has all changes.
  void build(const jobs::AcceptedJob& job) {
    store->run([&](kv::Transaction& tx) {
      const auto request = index::BuildRequest::parse(job.data);
      const auto database = catalog.open(tx, request.database);
      const index::IndexKeys keys(database, request.signature);
      index::write_sequence(tx, keys, docs::last_sequence(tx, database));
      index::clear_failures(tx, keys);
      jobs::finish(queue, tx, job.attempt());
    });
  }
  void build_all() {
    for (;;) {
      const auto jobs = accept(100);
      if (jobs.empty()) return;
      for (const auto& job : jobs) build(job);
    }
  }
  void fail(const jobs::AcceptedJob& job, bool by_function = false) {
    store->run([&](kv::Transaction& tx) {
      const auto request = index::BuildRequest::parse(job.data);
      const auto database = catalog.open(tx, request.database);
      index::fail_build(queue, tx, index::IndexKeys(database, request.signature), job.attempt(), "no",
                        by_function, false);
    });
  }
  std::optional<WaitReason> wait_reason_of(std::string_view design_id) const {
    for (const auto& waiting : ken->status().waiting) {
      if (waiting.index.design_document == design_id) return waiting.why;
    }
    return std::nullopt;
  }
  // One job runs and is not done, with one batch channel for all.
  jobs::AcceptedJob take_batch_channel() {
    ken->set_limit(1000);
    config.override_with("ken", "batch_channels", "1");
    create("large");
    put_design(0, "large");
    scan("large");
    return accept().at(0);
  }
};

}  // namespace divan::ken
