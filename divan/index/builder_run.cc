// One build from its beginning to its end: batches are read, mapped and written.
#include <absl/cleanup/cleanup.h>

#include "divan/docs/document.h"
#include "divan/docs/reader.h"
#include "divan/index/build_state.h"
#include "divan/index/failures.h"

namespace divan::index {
namespace {

// How many changes are counted for a build's progress: it is a walk over their rows.
constexpr std::int64_t kMaxCounted = 1'000'000;
// A build of no more changes does not say that it has begun.
constexpr std::int64_t kSilentBuild = 100;
// A small build has no more changes before it, and takes no longer.
constexpr std::int64_t kSmallBuild = 1000;
constexpr Duration kSmallBuildFor = std::chrono::seconds(1);
// The first batch of another one is short: no further one is read before it is written.
constexpr std::size_t kFirstBatch = 100;

}  // namespace

// Until the index is up to date, or nobody wants it any more, or this process is to stop: ends the attempt in
// each case.
void Builder::build(Build& state) {
  if (!begin(state)) return;
  if (!may_go_on(state) || !do_more_work(state, true)) return give_back(state);
  std::deque<Batch> ahead;
  // What is being mapped is not waited for when a batch before it has failed.
  const absl::Cleanup stop_mapping = [&] { state.stop.request_stop(); };
  bool leaving = false;
  for (;;) {
    leaving = leaving || others_wait(state) || !may_go_on(state);
    // What is mapped already is not thrown away.
    if (stopping_ || (leaving && ahead.empty())) return give_back(state);
    while (!leaving && !state.cancelled && state.wanted && !state.read_all &&
           ahead.size() < (state.worked ? options_.batches_ahead : 1)) {
      Batch batch = read_batch(state, ahead.empty());
      if (batch.documents.empty()) break;
      ahead.push_back(std::move(batch));
    }
    if (ahead.empty() || !state.wanted) {
      if (!do_more_work(state, false)) return give_back(state);
      if (finish(state)) return;
      state.read_all = false;
      continue;
    }
    const bool is_last = state.read_all && ahead.size() == 1;
    if (!write_batch(state, ahead.front(), is_last)) return give_back(state);
    if (state.finished) return;
    ahead.pop_front();
  }
}

// Finds out what there is to do; ends the attempt and answers false if nobody wants the index any more.
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
    state.written = state.read = read_sequence(tx, *state.keys);
    state.failed_before =
        tx.get(state.keys->record(IndexKeys::Record::failures), kv::Isolation::snapshot).has_value();
    // A document has one place in the changes, and one that is met again is met beyond their present end.
    if (state.written == kv::Versionstamp()) state.all_new = docs::last_sequence(tx, *database);
    const auto info = docs::read_info(tx, *database);
    state.total = state.written == kv::Versionstamp()
                      ? info.doc_count + info.doc_del_count
                      : docs::count_changes(tx, *database, state.written, kMaxCounted);
    // A small build tells of itself when its rows are there: somebody waits for them, and a commit is a sync.
    if (state.total > kSilentBuild)
      jobs::update(queue_, tx, state.attempt, std::nullopt, state.progress(clock_));
    return true;
  });
}

// What the index keeps beside its rows, piece by piece; false if there is no time for all of it.
bool Builder::do_more_work(Build& state, bool resume_only) {
  while (!state.cancelled && state.wanted) {
    const auto work = state.index->more_work(store_, *state.keys, resume_only);
    if (!work) return true;
    write(state, [&](kv::Transaction& tx, Build&) { work->write(tx, *state.keys); });
    if (stopping_ || others_wait(state)) return false;
  }
  return true;
}

// Ends the attempt if nothing has changed since its last batch was read.
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

// The look at the end of the changes conflicts with a change that is committed at the same time: so whoever
// finds the job running need not ask for another run.
bool Builder::finish_in(kv::Transaction& tx, const Build& state) {
  const auto database = state.open(tx, catalog_);
  // A look that finds more is none to conflict for.
  for (const auto isolation : {kv::Isolation::snapshot, kv::Isolation::serializable}) {
    const auto last = docs::last_sequence(tx, database, isolation);
    if (last > state.written && !state.cancelled && state.wanted) return false;
  }
  jobs::finish(queue_, tx, state.attempt, std::nullopt, state.progress(clock_));
  if (state.failed_before) clear_failures(tx, *state.keys);
  return true;
}

// To be gone on with later, here or elsewhere, behind those that wait and are as urgent.
void Builder::give_back(Build& state) {
  const auto delay = stopping_ ? std::nullopt : std::optional(Duration());
  store_.run([&](kv::Transaction& tx) { jobs::release(queue_, tx, state.attempt, delay); });
}

// Whether somebody else is to have the thread: an index that needs a minute is not to wait for one that needs
// a day.
bool Builder::others_wait(const Build& state) {
  if (!state.worked) return false;
  const bool slice_is_over = clock_.now() - state.began >= options_.time_slice;
  const auto due =
      store_.run([&](kv::Transaction& tx) { return jobs::due_jobs(queue_, tx, state.attempt.type); });
  const bool free_thread = worker_ != nullptr && busy_ < threads();
  return slots_.yields_to(state.slot, due, free_thread, slice_is_over);
}

// False if the build is not small, and there is no slot for a large one.
bool Builder::may_go_on(Build& state) {
  if (!state.limits.urgent) return true;
  if (state.total - state.done <= kSmallBuild && clock_.now() - state.began <= kSmallBuildFor) return true;
  if (!slots_.enlarge(state.slot)) return false;
  state.limits.urgent = false;
  return true;
}

// Sets state.read_all if it met the end of the changes. `is_next`: it is written before anything else is
// read.
Builder::Batch Builder::read_batch(Build& state, bool is_next) {
  Batch batch;
  const bool is_short = !state.worked && state.total > kSmallBuild;
  const std::size_t most =
      is_short ? std::min(kFirstBatch, options_.batch_documents) : options_.batch_documents;
  store_.run([&](kv::Transaction& tx) {
    batch.documents.clear();
    state.read_all = false;
    const auto database = state.open(tx, catalog_);
    if (!state.find(tx, database, kinds_)) return;
    std::vector<docs::Change> changes;
    docs::visit_changes(tx, database, state.read, [&](const docs::Change& change) {
      changes.push_back(change);
      if (change.deleted) changes.back().chunks = 0;
      return changes.size() < most;
    });
    const auto bodies = docs::read_bodies(tx, database, changes, options_.batch_bytes);
    state.read_all = changes.size() < most && bodies.size() == changes.size();
    batch.documents.reserve(bodies.size());
    // As in CouchDB, functions see which other leaves there are.
    const auto may_have_conflicts = [](const docs::Change& change) {
      return !change.deleted && change.other_leaves != 0;
    };
    std::vector<std::string> conflicting;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      if (may_have_conflicts(changes[i])) conflicting.push_back(changes[i].id);
    }
    docs::prefetch_trees(tx, database, conflicting);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      SourceDocument document{std::move(changes[i]), {}};
      if (!document.change.deleted) {
        docs::append_open_document(document.json, document.change.id, document.change.winner, false,
                                   bodies[i]);
        if (may_have_conflicts(document.change)) {
          docs::append_conflicts(document.json,
                                 docs::read_tree(tx, database, document.change.id, kv::Isolation::snapshot));
        }
        document.json += '}';
      }
      batch.documents.push_back(std::move(document));
    }
  });
  if (batch.documents.empty()) return batch;
  state.read = batch.documents.back().change.sequence;
  // The documents stay where they are when the batch is moved.
  const std::span<const SourceDocument> documents = batch.documents;
  // A thread of its own has nothing to overlap with if this is all.
  batch.mapped = std::async(is_next && state.read_all ? std::launch::deferred : std::launch::async,
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

// False if it was left unfinished. `is_last`: the changes end with it.
bool Builder::write_batch(Build& state, Batch& batch, bool is_last) {
  auto mapped = batch.mapped.get();
  std::span<const SourceDocument> documents = batch.documents;
  for (;;) {
    state.failures += static_cast<std::int64_t>(mapped->failures());
    const auto these = documents.first(mapped->documents());
    documents = documents.subspan(mapped->documents());
    write_rows(state, *mapped, these, is_last && documents.empty());
    if (documents.empty()) return true;
    if (stopping_ || others_wait(state)) return false;
    mapped = map(*state.index, state.request.database, documents);
  }
}

// Writes what was mapped, in as many transactions as it needs. The last one of all ends the attempt if it
// can: one commit less.
void Builder::write_rows(Build& state, MappedBatch& mapped, std::span<const SourceDocument> documents,
                         bool is_last) {
  std::size_t first = 0;
  while (first < documents.size()) {
    const IndexedSoFar so_far{state.total - state.done, documents.back().change.sequence <= state.all_new};
    const std::size_t next = mapped.prepare(store_, *state.keys, first, so_far);
    write(state, [&](kv::Transaction& tx, Build& after) {
      mapped.write(tx, *after.keys);
      if (next == first) return;  // a document that takes several transactions
      after.written = documents[next - 1].change.sequence;
      after.done += static_cast<std::int64_t>(next - first);
      write_sequence(tx, *after.keys, after.written);
      catalog_.changed(tx, after.open(tx, catalog_), events::DatabaseEvent::index_commit,
                       after.request.design_document);
      if (is_last && next == documents.size() && !after.index->needs_work(tx, *after.keys))
        after.finished = finish_in(tx, after);
    });
    first = next;
  }
}

// Does some work on the index in a transaction that only who has the job, and nobody but him has written to
// the index, can commit. `work` changes a copy of the build, which takes its place.
void Builder::write(Build& state, const std::function<void(kv::Transaction&, Build&)>& work) {
  Build after = state;
  store_.run([&](kv::Transaction& tx) {
    after = state;
    after.open(tx, catalog_);  // throws if it is not there any more
    // Its rows were removed, say. The next attempt begins where the index is then.
    if (read_sequence(tx, *after.keys) != after.written)
      throw conflict("Somebody else has written to the index.");
    work(tx, after);
    after.worked = true;
    if (after.finished) return;
    after.cancelled = jobs::update(queue_, tx, after.attempt, std::nullopt, after.progress(clock_)).cancel;
  });
  state = std::move(after);
}

}  // namespace divan::index
