// A view's rows without documents: writes batches of rows as a build would, to a real store, and with the
// real sandbox for reductions.
#pragma once

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/json.h"
#include "divan/index/views/query.h"
#include "divan/index/views/view_batch.h"
#include "divan/index/views/view_kind.h"
#include "divan/kv/counting_testing.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::index::views::testing {

/// Not thread-safe.
class ReduceNodesHarness {
 public:
  /// `views` is the member of a design document.
  ReduceNodesHarness(std::string views, const FanOut& fan_out, const js::Limits& limits = {})
      : views_(std::move(views)), fan_out_(fan_out), limits_(limits) {
    store->run([&](kv::Transaction& tx) { catalog.create(tx, name_); });
    index = parse();
  }

  /// Writes one batch: the given documents now have exactly the given rows (view, key, value).
  using Rows = std::vector<std::tuple<int, std::string, std::string>>;
  void write(const std::map<std::string, Rows>& documents, std::int64_t behind = 0) {
    ViewBatch batch(index->views().size(), index);
    std::size_t number = 0;
    for (const auto& [id, rows] : documents) {
      batch.add_document(id);
      for (const auto& [view, key, value] : rows) batch.add_row(number, view, key, value);
      ++number;
    }
    const IndexKeys keys = this->keys();
    for (std::size_t done = 0; done < batch.documents();) {
      done = batch.prepare(store_counting, keys, done, {behind});
      store->run([&](kv::Transaction& tx) {
        batch.write(tx, keys);
        written_bytes = tx.read_only() ? 0 : tx.approximate_size();
        ++sequence_;
        const std::string version = std::string(6, '\0') + std::to_string(1000 + sequence_ % 9000);
        write_sequence(tx, keys, kv::Versionstamp::complete(version));
      });
    }
  }
  /// One piece of building all reduce nodes; false if there is none.
  bool build_piece(bool resume_only = false) {
    const IndexKeys keys = this->keys();
    const auto work = index->more_work(store_counting, keys, resume_only);
    if (work) store->run([&](kv::Transaction& tx) { work->write(tx, keys); });
    return work != nullptr;
  }

  IndexKeys keys() {
    return store->run(
        [&](kv::Transaction& tx) { return IndexKeys(catalog.open(tx, name_), index->signature()); });
  }
  ReduceTreeState state(int view) {
    return store->run(
        [&](kv::Transaction& tx) { return read_reduce_tree_state(tx, ReduceNodeKeys(keys(), view)); });
  }
  /// The reduce nodes of a view, by the part of their keys after the view.
  std::map<std::string, std::string> nodes(int view) {
    const ReduceNodeKeys node_keys(keys(), view);
    std::map<std::string, std::string> found;
    store->run([&](kv::Transaction& tx) {
      found.clear();
      for (const auto& row : tx.get_range(node_keys.all()).rows) {
        if (row.key != node_keys.state()) found[row.key.substr(node_keys.state().size())] = row.value;
      }
    });
    return found;
  }
  /// As if the index had been built by a version without reduce nodes.
  void drop_reduce_nodes() {
    store->run([&](kv::Transaction& tx) {
      for (const auto& [name, view] : index->views())
        tx.clear_range(ReduceNodeKeys(keys(), view.number).all());
    });
  }

  std::string query(std::string_view view, const ViewParams& params) {
    Query query(store_counting, catalog, name_, index, *index->find(view), params);
    std::string out;
    while (query.next(out)) {}
    return json::compact(out);
  }

  /// What instances share, since it takes long to open a store and to start processes. It ends with the last
  /// instance and the last returned pointer: other tests check all rows of the store, or inspect the children
  /// of this process.
  struct Shared {
    kv::embedded::TemporaryStore store;
    SystemClock clock;
    js::Pool pool{pool_options(), clock};
  };
  static std::shared_ptr<Shared> shared() {
    static std::weak_ptr<Shared> last;
    auto all = last.lock();
    if (!all) last = all = std::make_shared<Shared>();
    return all;
  }
  /// For all instances, until it is set again or the processes end.
  static void limit_reductions(const js::ReduceLimit& limit) {
    auto options = pool_options();
    options.reduce_limit = limit;
    shared()->pool.configure(options);
  }

  std::shared_ptr<const ViewIndex> parse() {
    return parse_views("_design/d", R"({"views":)" + views_ + "}", shared_->pool, limits_, fan_out_);
  }

 private:
  const std::shared_ptr<Shared> shared_ = shared();

 public:
  kv::embedded::TemporaryStore& store = shared_->store;
  kv::testing::CountingStore store_counting{*store};
  events::Bus bus;
  SystemClock clock;
  docs::Catalog catalog{bus, clock};
  std::shared_ptr<const ViewIndex> index;
  std::size_t written_bytes = 0;  // by the last transaction of write(), without the index's sequence

 private:
  static std::string next_name() {
    static int number = 0;
    return fmt::format("db{}", ++number);
  }
  static js::PoolOptions pool_options() { return {.binary = DIVAN_JS_BINARY, .processes = 1}; }

  const std::string name_ = next_name();
  const std::string views_;
  const FanOut fan_out_;
  const js::Limits limits_;
  int sequence_ = 0;
};

}  // namespace divan::index::views::testing
