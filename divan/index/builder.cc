#include "divan/index/builder.h"

#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/document.h"
#include "divan/docs/reader.h"

namespace divan::index {

// One run of a build's job.
struct Builder::Build {
  jobs::Attempt attempt;
  BuildRequest request;
  IndexPtr index;
  std::int64_t started_on = 0;  // seconds since 1970
  std::int64_t done = 0;        // changes of this run that are in the index
  std::int64_t total = 0;       // changes that there are for this run, as far as known
  std::int64_t failures = 0;    // documents for which a function failed
  kv::Versionstamp written;     // the index's sequence
  kv::Versionstamp read;        // how far batches were read
  bool cancelled = false;

  docs::Database open(kv::Transaction& tx, docs::Catalog& catalog) const {
    auto database = catalog.open(tx, request.database);
    // Another database of the same name is not the one that this build was asked for.
    if (database.number() != request.database_number) throw not_found("Database does not exist.");
    return database;
  }

  // As /_active_tasks shows it.
  std::string progress(const Clock& clock) const {
    const std::int64_t all = std::max(total, done);
    std::string out;
    json::Writer(out)
        .begin_object()
        .key("type")
        .string("indexer")
        .key("database")
        .string(request.database)
        .key("design_document")
        .string(request.design_document)
        .key("changes_done")
        .number(done)
        .key("total_changes")
        .number(all)
        .key("progress")
        .number(all == 0 ? 100 : done * 100 / all)
        .key("map_failures")
        .number(failures)
        .key("started_on")
        .number(started_on)
        .key("updated_on")
        .number(clock.wall_ms() / 1000)
        .end_object();
    return out;
  }
};

Builder::Builder(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, workers::Monitor& monitor,
                 const Kinds& kinds, const Clock& clock, BuilderOptions options)
    : store_(store),
      catalog_(catalog),
      queue_(queue),
      monitor_(monitor),
      kinds_(kinds),
      clock_(clock),
      options_(options),
      acceptor_(queue, store, clock) {}

Builder::~Builder() {
  stopping_ = true;
  acceptor_.interrupt();
  for (auto& thread : threads_) thread.join();
}

void Builder::start(std::string_view worker_id) {
  worker_ = monitor_.add(kBackgroundRole, worker_id, "{}");
  for (std::size_t i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "builder");
  }
}

void Builder::work() {
  constexpr Duration kPauseAfterError = std::chrono::seconds(1);
  std::vector<std::string> types;
  for (const auto& kind : kinds_) types.emplace_back(kind->name());
  while (!stopping_) {
    try {
      // The worker may have been evicted and registered again in between: accept() takes its name.
      const auto ref = worker_->ref();
      for (const auto& job : acceptor_.accept(types, {.worker = workers::WorkerRef{ref.role, ref.id, {}}},
                                              MonotonicTime::max())) {
        run(job);
      }
    } catch (const Error& error) {
      log::error("Index jobs could not be accepted: {}", error.what());
      if (!stopping_) clock_.sleep(kPauseAfterError);
    }
  }
}

void Builder::run(const jobs::AcceptedJob& job) {
  Build state;
  state.attempt = job.attempt();
  state.started_on = clock_.wall_ms() / 1000;
  const auto in_tx = [&](auto&& fn) { store_.run([&](kv::Transaction& tx) { fn(tx); }); };
  try {
    try {
      state.request = BuildRequest::parse(job.data);
      const bool complete = build(state);
      in_tx([&](kv::Transaction& tx) {
        if (complete) {
          jobs::finish(queue_, tx, state.attempt);
        } else {
          jobs::release(queue_, tx, state.attempt);
        }
      });
    } catch (const Error& error) {
      if (error.name() == "halt") throw;
      log::warning("Index {} of {}: {}", state.request.design_document, state.request.database, error.what());
      in_tx([&](kv::Transaction& tx) { jobs::fail(queue_, tx, state.attempt, error.what()); });
    }
  } catch (const Error& error) {
    // Somebody else has the job, or nobody needs it any more; otherwise it is taken back when it is missed.
    log::info("Index {} of {}: {}", state.request.design_document, state.request.database, error.what());
  }
}

// True when the index is up to date (or nobody wants it any more), false when it is to be given back.
bool Builder::build(Build& state) {
  const bool wanted = store_.run([&](kv::Transaction& tx) {
    const auto database = catalog_.find(tx, state.request.database);
    if (!database || database->number() != state.request.database_number) return false;
    state.index = find_index(tx, *database, kinds_, state.request.design_document, state.request.signature);
    if (!state.index) return false;
    state.written = state.read = read_sequence(tx, IndexKeys(*database, state.request.signature));
    const auto info = docs::read_info(tx, *database);
    state.total = state.written == kv::Versionstamp()
                      ? info.doc_count + info.doc_del_count
                      : docs::count_changes(tx, *database, state.written, INT64_MAX);
    jobs::update(queue_, tx, state.attempt, std::nullopt, state.progress(clock_));
    return true;
  });
  if (!wanted) return true;

  std::deque<Batch> ahead;
  bool at_end = false;
  for (;;) {
    if (stopping_ || state.cancelled) return state.cancelled;
    while (!at_end && ahead.size() < options_.batches_ahead) {
      Batch batch = read_batch(state);
      at_end = batch.documents.empty();
      if (at_end) break;
      ahead.push_back(std::move(batch));
    }
    if (ahead.empty()) return true;
    write_batch(state, ahead.front());
    ahead.pop_front();
    at_end = false;
  }
}

Builder::Batch Builder::read_batch(Build& state) {
  Batch batch;
  store_.run([&](kv::Transaction& tx) {
    batch.documents.clear();
    const auto database = state.open(tx, catalog_);
    std::vector<docs::Change> changes;
    docs::visit_changes(tx, database, state.read, false, [&](const docs::Change& change) {
      changes.push_back(change);
      if (change.deleted) changes.back().chunks = 0;
      return changes.size() < options_.batch_documents;
    });
    const auto bodies = docs::read_bodies(tx, database, changes, options_.batch_bytes);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      SourceDocument document{std::move(changes[i]), {}};
      if (!document.change.deleted) {
        docs::append_open_document(document.json, document.change.id, document.change.winner, false,
                                   bodies[i]);
        document.json += '}';
      }
      batch.documents.push_back(std::move(document));
    }
  });
  if (batch.documents.empty()) return batch;
  state.read = batch.documents.back().change.sequence;
  // The documents stay where they are when the batch is moved.
  const std::span<const SourceDocument> documents = batch.documents;
  batch.mapped =
      std::async(std::launch::async, [index = state.index, documents] { return index->map(documents); });
  return batch;
}

void Builder::write_batch(Build& state, Batch& batch) {
  const auto mapped = batch.mapped.get();
  state.failures += static_cast<std::int64_t>(mapped->failures());
  std::size_t first = 0;
  while (first < batch.documents.size()) {
    std::size_t next = 0;
    Build after = state;
    store_.run([&](kv::Transaction& tx) {
      after = state;
      const auto database = after.open(tx, catalog_);
      const IndexKeys keys(database, after.request.signature);
      if (read_sequence(tx, keys) != after.written)
        throw jobs::halt("Somebody else has written to the index.");
      next = mapped->write(tx, keys, first);
      after.written = batch.documents[next - 1].change.sequence;
      after.done += static_cast<std::int64_t>(next - first);
      write_sequence(tx, keys, after.written);
      after.cancelled = jobs::update(queue_, tx, after.attempt, std::nullopt, after.progress(clock_)).cancel;
      catalog_.publish_after_commit(tx, database, events::DatabaseEvent::index_commit,
                                    after.request.design_document);
    });
    state = std::move(after);
    first = next;
  }
}

}  // namespace divan::index
