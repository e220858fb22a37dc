// One run of a build: reads, maps and writes batches.
#include <absl/cleanup/cleanup.h>

#include "divan/base/check.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/events/database_events.h"
#include "divan/index/build_state.h"
#include "divan/index/builder.h"
#include "divan/index/failures.h"
#include "divan/index/source_documents.h"

namespace divan::index {
namespace {

// Maximum number of changes counted for a build's progress, since counting reads their rows.
constexpr std::int64_t kMaxCounted = 1'000'000;
// A build of at most this many changes does not report that it has begun.
constexpr std::int64_t kSilentBuild = 100;
// Maximum number of changes and duration of a small build.
constexpr std::int64_t kSmallBuild = 1000;
constexpr Duration kSmallBuildFor = std::chrono::seconds(1);
// Maximum size of the first batch of a build that is not small: no other batch is read before it is written.
constexpr std::size_t kFirstBatch = 100;
// Events of the database that are kept for a build which waits for changes.
constexpr std::size_t kMaxChangeEvents = 16;

}  // namespace

// Runs until the index is up to date, or is no longer defined, or this process stops; in each case ends the
// attempt.
void Builder::build(Build& state) {
  if (!begin(state)) return;
  if (!may_continue(state) || !run_more_work(state, true)) return release(state);
  std::deque<Batch> ahead;
  // If a batch has failed, the mapping of later ones is cancelled.
  const absl::Cleanup stop_mapping = [&] { state.stop.request_stop(); };
  std::optional<events::Subscription> changes;
  if (may_wait(state)) {
    changes = catalog_.bus().subscribe(events::database_channel(state.request.database),
                                       {.max_events = kMaxChangeEvents});
  }
  bool leaving = false;
  for (;;) {
    leaving = leaving || should_yield(state) || !may_continue(state);
    // Batches that are already mapped are written.
    if (stopping_ || (leaving && ahead.empty())) {
      // It may only have waited for more changes.
      if (changes && finish(state)) return;
      return release(state);
    }
    const std::size_t most_ahead = state.worked ? options_.batches_ahead : 1;
    while (!leaving && !state.cancelled && state.wanted && !state.read_all && ahead.size() < most_ahead) {
      Batch batch = read_batch(state, ahead.empty(), most_ahead == 1);
      if (batch.documents.empty()) break;
      ahead.push_back(std::move(batch));
    }
    if (ahead.empty() || !state.wanted) {
      if (!run_more_work(state, false)) return release(state);
      if (!await_change(state, changes) && finish(state)) return;
      state.read_all = false;
      continue;
    }
    const bool is_last = state.read_all && ahead.size() == 1;
    if (!write_batch(state, ahead.front(), is_last)) return release(state);
    if (state.finished) return;
    ahead.pop_front();
  }
}

// Determines the work to do; ends the attempt and returns false if the index is no longer defined.
bool Builder::begin(Build& state) {
  return store_.run([&](kv::Transaction& tx) {
    const auto database = catalog_.find(tx, state.request.database);
    const bool same = database && database->number() == state.request.database_number;
    if (same) watch_design_documents(tx, *database);
    if (!same || !state.find(tx, *database, kinds_)) {
      jobs::finish(queue_, tx, state.attempt);
      return false;
    }
    state.keys.emplace(*database, state.request.signature);
    if (tx.is_remote()) {
      kv::Prefetch reads;
      reads.key(state.keys->state());
      reads.key(state.keys->record(IndexKeys::Record::failures));
      tx.prefetch(reads);
    }
    state.written = state.read = state.index->begin(tx, *database, *state.keys);
    state.failed_before =
        tx.get(state.keys->record(IndexKeys::Record::failures), kv::Isolation::snapshot).has_value();
    // Each document occurs once in the changes; if it changes again, it occurs after their current end.
    if (state.written == kv::Versionstamp()) state.all_new = docs::last_sequence(tx, *database);
    const auto info = docs::read_info(tx, *database);
    state.total = state.written == kv::Versionstamp()
                      ? info.doc_count + info.doc_del_count
                      : docs::count_index_changes(tx, *database, state.written, kMaxCounted);
    // A small build reports its progress with its rows: a query may wait for them, and each commit is a sync.
    if (state.total > kSilentBuild)
      jobs::update(queue_, tx, state.attempt, std::nullopt, state.progress(clock_));
    return true;
  });
}

// Writes the other data of the index, piece by piece; returns false if the build must be released before the
// end.
bool Builder::run_more_work(Build& state, bool resume_only) {
  while (!state.cancelled && state.wanted) {
    const auto work = state.index->more_work(store_, *state.keys, resume_only);
    if (!work) return true;
    write(state, [&](kv::Transaction& tx, Build&) { work->write(tx, *state.keys); });
    if (stopping_ || should_yield(state)) return false;
  }
  return true;
}

// Returns true if the build may wait for changes: a large one must not keep its slot.
bool Builder::may_wait(const Build& state) const {
  return options_.wait_for_changes > Duration(0) && state.index->allows_small_builds() && state.limits.urgent;
}

// Waits for an event of the database that is not of an index; from then on, the build is like one that has
// just begun. Returns false if there is none, if the build may not wait, or if another one may need the
// thread.
bool Builder::await_change(Build& state, std::optional<events::Subscription>& changes) {
  if (!changes || !may_wait(state) || !state.wanted || state.cancelled || stopping_) return false;
  // One thread accepts jobs, and another one must be free for them. Threads that are still starting count as
  // free.
  if (worker_ == nullptr || busy_ + 1 >= threads()) return false;
  const MonotonicTime deadline = clock_.now() + options_.wait_for_changes;
  while (const auto message = changes->next_until(clock_, deadline)) {
    const bool is_commit =
        message->event && message->event->kind == events::kind_name(events::DatabaseEvent::index_commit);
    if (is_commit) continue;
    // The next batch has what these were published for.
    while (changes->try_next()) {}
    state.began = clock_.now();
    return true;
  }
  return false;
}

// Ends the attempt if there were no changes since its last batch was read; otherwise returns false.
bool Builder::finish(Build& state) {
  return store_.run([&](kv::Transaction& tx) {
    if (!state.wanted) {
      const auto database = state.open(tx, catalog_);
      watch_design_documents(tx, database);
      if (state.find(tx, database, kinds_)) return false;
    }
    return finish_in(tx, state);
  });
}

// Reading the end of the changes conflicts with a concurrent change, so that a request that finds the job
// running need not request another run.
bool Builder::finish_in(kv::Transaction& tx, const Build& state) {
  const auto database = state.open(tx, catalog_);
  // If there are more changes, the read must not cause a conflict.
  for (const auto isolation : {kv::Isolation::snapshot, kv::Isolation::serializable}) {
    const auto last = docs::last_sequence(tx, database, isolation);
    if (last > state.written && !state.cancelled && state.wanted) return false;
  }
  jobs::finish(queue_, tx, state.attempt, std::nullopt, state.progress(clock_));
  if (state.failed_before) clear_failures(tx, *state.keys);
  return true;
}

// Releases the job, to be resumed by any process after the pending jobs that are equally urgent.
void Builder::release(Build& state) {
  const auto delay = stopping_ ? std::nullopt : std::optional(Duration());
  store_.run([&](kv::Transaction& tx) { jobs::release(queue_, tx, state.attempt, delay); });
}

// Returns true if another build should get the thread: an index that needs a minute must not wait for one
// that needs a day.
bool Builder::should_yield(const Build& state) {
  if (!state.worked) return false;
  const bool slice_is_over = clock_.now() - state.began >= options_.time_slice;
  const auto due =
      store_.run([&](kv::Transaction& tx) { return jobs::due_jobs(queue_, tx, state.attempt.type); });
  const bool free_thread = worker_ != nullptr && busy_ < threads();
  return slots_.yields_to(state.slot, due, free_thread, slice_is_over);
}

// Returns false if the build is not small, and there is no slot for a large one.
bool Builder::may_continue(Build& state) {
  if (!state.limits.urgent) return true;
  if (state.total - state.done <= kSmallBuild && clock_.now() - state.began <= kSmallBuildFor) return true;
  if (!slots_.enlarge(state.slot)) return false;
  state.limits.urgent = false;
  return true;
}

// Sets state.read_all if it has reached the end of the changes. `is_next`: the batch is the next one to be
// written; `is_alone`: it is written before another one is read.
Builder::Batch Builder::read_batch(Build& state, bool is_next, bool is_alone) {
  Batch batch;
  const bool is_short = !state.worked && state.total > kSmallBuild;
  const std::size_t most =
      is_short ? std::min(kFirstBatch, options_.batch_documents) : options_.batch_documents;
  store_.run([&](kv::Transaction& tx) {
    batch.documents.clear();
    state.read_all = false;
    const auto database = state.open(tx, catalog_);
    if (!state.find(tx, database, kinds_)) return;
    auto read = read_source_documents(tx, database, *state.index, state.read, most, options_.batch_bytes);
    batch.documents = std::move(read.documents);
    state.read_all = read.is_all;
  });
  if (batch.documents.empty()) return batch;
  DIVAN_CHECK(batch.documents.size() <= most, "a batch of {} documents", batch.documents.size());
  DIVAN_CHECK(batch.documents.front().change.sequence > state.read,
              "a batch begins before the end of the previous one");
  state.read = batch.documents.back().change.sequence;
  // Remains valid when the batch is moved.
  const std::span<const SourceDocument> documents = batch.documents;
  // Without other batches there is nothing to overlap with, and no need for another thread.
  const bool deferred = is_alone || (is_next && state.read_all);
  batch.mapped = std::async(deferred ? std::launch::deferred : std::launch::async,
                            [this, index = state.index, database = state.request.database, documents] {
                              return map(*index, database, documents);
                            });
  return batch;
}

std::unique_ptr<MappedBatch> Builder::map(const Index& index, const std::string& database,
                                          std::span<const SourceDocument> documents) const {
  const auto began = clock_.now();
  auto mapped = index.map(documents);
  if (options_.meter != nullptr)
    options_.meter->mapped(database, index.design_document(), *mapped, clock_.now() - began);
  return mapped;
}

// Returns false if the build must be released before all of it is written. `is_last`: the changes end with
// this batch.
bool Builder::write_batch(Build& state, Batch& batch, bool is_last) {
  auto mapped = batch.mapped.get();
  std::span<const SourceDocument> documents = batch.documents;
  for (;;) {
    state.failures += static_cast<std::int64_t>(mapped->failures());
    DIVAN_CHECK(mapped->documents() > 0 && mapped->documents() <= documents.size(),
                "{} documents of {} were mapped", mapped->documents(), documents.size());
    const auto these = documents.first(mapped->documents());
    documents = documents.subspan(mapped->documents());
    write_rows(state, *mapped, these, is_last && documents.empty());
    if (documents.empty()) return true;
    if (stopping_ || should_yield(state)) return false;
    mapped = map(*state.index, state.request.database, documents);
  }
}

// Writes mapped documents in as many transactions as needed. The last transaction of the build ends the
// attempt if possible, to save a commit.
void Builder::write_rows(Build& state, MappedBatch& mapped, std::span<const SourceDocument> documents,
                         bool is_last) {
  std::size_t first = 0;
  while (first < documents.size()) {
    const IndexedSoFar so_far{state.total - state.done, documents.back().change.sequence <= state.all_new};
    const std::size_t next = mapped.prepare(store_, *state.keys, first, so_far);
    DIVAN_CHECK(next >= first && next <= documents.size(), "documents {} to {} of {}", first, next,
                documents.size());
    const auto write_prepared = [&](kv::Transaction& tx, Build& after) {
      mapped.write(tx, *after.keys);
      if (next == first) return;  // a document that takes several transactions
      DIVAN_CHECK(documents[next - 1].change.sequence > after.written, "the index's sequence would decrease");
      after.written = documents[next - 1].change.sequence;
      after.done += static_cast<std::int64_t>(next - first);
      write_sequence(tx, *after.keys, after.written);
      catalog_.changed(tx, after.open(tx, catalog_), events::DatabaseEvent::index_commit,
                       after.request.design_document);
      if (is_last && next == documents.size() && !may_wait(after) &&
          !after.index->needs_work(tx, *after.keys))
        after.finished = finish_in(tx, after);
    };
    mapped.commit([&] { write(state, write_prepared); });
    first = next;
  }
}

// Runs `work` in a transaction that commits only if the worker still has the job and no other writer has
// written to the index. `work` changes a copy of the build, which then replaces it.
void Builder::write(Build& state, const std::function<void(kv::Transaction&, Build&)>& work) {
  Build after = state;
  store_.run([&](kv::Transaction& tx) {
    after = state;
    after.open(tx, catalog_);  // throws if it was deleted
    // For example, its rows were removed. The next attempt begins at the index's sequence.
    if (find_sequence(tx, *after.keys) != after.written) throw IndexChanged();
    work(tx, after);
    after.worked = true;
    if (after.finished) return;
    after.cancelled = jobs::update(queue_, tx, after.attempt, std::nullopt, after.progress(clock_)).cancel;
  });
  state = std::move(after);
}

}  // namespace divan::index
