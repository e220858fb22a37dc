// For the tests of views: design documents, documents, builds and queries.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error_testing.h"
#include "divan/base/json.h"
#include "divan/docs/writer.h"
#include "divan/index/builder.h"
#include "divan/index/views/check.h"
#include "divan/index/views/query.h"
#include "divan/index/views/view_kind.h"
#include "divan/kv/check_testing.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::index::views::testing {

/// For builders on the test's own thread: time advances only with their pauses, which take no real time.
class PassingClock final : public Clock {
 public:
  MonotonicTime now() const override { return now_; }
  std::int64_t wall_ms() const override {
    return 1'700'000'000'000 + now_.time_since_epoch().count() / 1'000'000;
  }
  bool wait_until(std::unique_lock<Mutex>&, ConditionVariable&, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    now_ = std::max(now_, deadline);
    return done();
  }
  void advance(Duration by) { now_ += by; }

 private:
  mutable MonotonicTime now_{};
};

/// A fixture with a database `db`, real documents, a real sandbox, and a builder that runs on the test's own
/// thread, for indexes of one kind. Not thread-safe.
struct IndexFixture : ::testing::Test {
  kv::embedded::TemporaryStore store;
  events::Bus bus;
  SystemClock clock;
  SeededRng rng{1};
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  workers::Monitor monitor{*store, registry, clock, rng};
  js::Pool pool{{.binary = DIVAN_JS_BINARY, .processes = 2}, clock};
  Kinds kinds;
  std::unique_ptr<Builder> builder;

  void set_up(std::unique_ptr<const Kind> kind, std::size_t batch_documents) {
    kinds.push_back(std::move(kind));
    declare_builds(queue, *store, kinds);
    builder = std::make_unique<Builder>(*store, catalog, queue, monitor, kinds, clock,
                                        BuilderOptions{.batch_documents = batch_documents});
    store->run([&](kv::Transaction& tx) { catalog.create(tx, "db"); });
  }

  /// Writes documents, and returns their revisions.
  std::vector<std::string> put_all(const std::vector<std::string>& texts) {
    std::vector<docs::IncomingDocument> documents;
    for (const auto& text : texts) documents.push_back(docs::parse_document(json::compact(text)));
    std::vector<std::string> revisions;
    for (const auto& result : docs::bulk_edit(*store, catalog, "db", documents, rng)) {
      EXPECT_FALSE(result.error) << result.error->what();
      revisions.push_back(result.revision.to_string());
    }
    return revisions;
  }
  std::string put(std::string_view json) { return put_all({std::string(json)}).front(); }

  /// The first index of the database; null if it has none.
  IndexPtr first_index() {
    return store->run([&](kv::Transaction& tx) {
      const auto found = indexes_of(tx, catalog.open(tx, "db"), kinds);
      return found.empty() ? nullptr : found.front();
    });
  }
  void request() {
    store->run([&](kv::Transaction& tx) {
      request_build(queue, tx, catalog.open(tx, "db"), *first_index(), kQueryPriority, nullptr);
    });
  }
  std::vector<jobs::AcceptedJob> accept(std::size_t limit = 1) {
    const std::vector<std::string> types{std::string(kinds.front()->name())};
    return store->run(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = limit}).jobs; });
  }
  void build() {
    request();
    for (const auto& job : accept()) builder->run(job);
  }
};

/// The same for views.
struct ViewsFixture : IndexFixture {
  // Small batches, so that a few documents make several.
  void SetUp() override { set_up(std::make_unique<ViewKind>(pool), 7); }

  void put_design(std::string_view views) {
    put(R"({"_id":"_design/d","views":)" + std::string(views) + "}");
  }

  std::shared_ptr<const ViewIndex> index() {
    return std::dynamic_pointer_cast<const ViewIndex>(first_index());
  }
  static std::string signature_of(const jobs::AcceptedJob& job) {
    return BuildRequest::parse(job.data).signature;
  }
  jobs::State queue_state(std::string_view id) {
    return store->run([&](kv::Transaction& tx) { return queue.find(tx, "views", id)->state; });
  }
  std::string query(std::string_view view,
                    const std::vector<std::pair<std::string, std::string>>& params = {}) {
    ViewParams parsed;
    for (const auto& [name, value] : params) set_param(parsed, name, value);
    const auto index = this->index();
    Query query(*store, catalog, "db", index, *index->find(view), parsed);
    std::string out;
    while (query.next(out)) {}
    return json::compact(out);
  }
  /// The ids of a view's rows in the response of a query without reduction, and the values of its reduction.
  static std::string ids_and_values(const std::string& listed, const std::string& reduced) {
    std::string found;
    json::for_each_element(*json::member(listed, "rows"), [&](std::string_view row) {
      found += *json::string_value(*json::member(row, "id")) + " ";
      return true;
    });
    json::for_each_element(*json::member(reduced, "rows"), [&](std::string_view row) {
      found += *json::member(row, "value");
      return true;
    });
    return found;
  }
  /// What a check of the whole store finds in the indexes' rows.
  std::vector<std::string> findings() {
    kv::testing::MapRows stored(*store);
    kv::Findings found;
    Check check(INT64_MAX, found, [](std::int64_t) { return "db"; });
    kv::testing::run_checks(stored, {&check});
    return found.kept();
  }
};

}  // namespace divan::index::views::testing
