#include "divan/index/builder.h"

#include <absl/cleanup/cleanup.h>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/document.h"
#include "divan/docs/reader.h"
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
// Of a design document's id, in what is told of a build.
constexpr std::size_t kMaxShownBytes = 1000;

// A build fails if the store has broken it off so often, and for so long, without letting it get any further.
constexpr int kMaxBrokenOff = 20;
constexpr Duration kMaxBrokenOffFor = std::chrono::minutes(2);
// What was longer ago is another matter.
constexpr Duration kBrokenOffLapse = std::chrono::minutes(10);

// Whether it may work another time: the store has not answered, or not in time. A build need not fail for
// that.
bool is_of_the_moment(const Error& error) {
  const auto* const of_store = dynamic_cast<const kv::Error*>(&error);
  return of_store != nullptr &&
         (of_store->retryable() || of_store->code() == kv::ErrorCode::transaction_timed_out);
}

// A build has turned out not to be small, and there is no slot for a large one.
class NotSmall : public std::exception {
 public:
  const char* what() const noexcept override { return "The build takes long, and is to wait for its turn."; }
};

// Calls `deleted` when the database is deleted, from the thread that says so.
class DeletionWatch {
 public:
  DeletionWatch(events::Bus& bus, const std::string& database, std::function<void()> deleted)
      : deleted_(std::move(deleted)) {
    auto subscription = bus.subscribe(events::database_channel(database), {.notify = [this] { look(); }});
    {
      std::lock_guard lock(mutex_);
      subscription_ = std::move(subscription);
      ready_ = true;
    }
    look();
  }
  DeletionWatch(const DeletionWatch&) = delete;
  DeletionWatch& operator=(const DeletionWatch&) = delete;
  ~DeletionWatch() { subscription_.end(); }

 private:
  void look() {
    bool deleted = false;
    {
      std::lock_guard lock(mutex_);
      if (!ready_) return;
      while (const auto message = subscription_.try_next()) {
        deleted |=
            message->event && message->event->kind == events::kind_name(events::DatabaseEvent::deleted);
      }
    }
    if (deleted) deleted_();
  }

  const std::function<void()> deleted_;
  std::mutex mutex_;
  bool ready_ = false;
  events::Subscription subscription_;
};

}  // namespace

// One run of a build's job.
struct Builder::Build {
  jobs::Attempt attempt;
  std::int64_t priority = 0;
  BuildRequest request;
  IndexPtr index;
  std::optional<IndexKeys> keys;  // of the index, once the build has begun
  std::int64_t started_on = 0;    // seconds since 1970
  std::int64_t done = 0;          // changes of this run that are in the index
  std::int64_t total = 0;         // changes that there are for this run, as far as known
  std::int64_t failures = 0;      // documents for which a function failed
  kv::Versionstamp written;       // the index's sequence
  kv::Versionstamp read;          // how far batches were read
  bool read_all = false;          // that was the end of the changes
  kv::Versionstamp all_new;       // documents with changes up to here have never been in the index
  bool cancelled = false;
  bool worked = false;         // has written something
  bool finished = false;       // the attempt has been ended
  bool wanted = true;          // whether a design document defines the index, as far as known
  bool failed_before = false;  // its last build did
  MonotonicTime began;
  Slots::Id slot = 0;
  BuildLimits limits;
  std::stop_source stop;

  // Looks for the index. The design document that the build was asked for may define it no more while another
  // one does.
  bool find(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds) {
    if (auto found = find_index(tx, database, kinds, request.design_document, request.signature)) {
      request.design_document = found->design_document();
      index = found->within(limits);
      return wanted = true;
    }
    return wanted = false;
  }

  docs::Database open(kv::Transaction& tx, docs::Catalog& catalog) const {
    auto database = catalog.open(tx, request.database);
    // Another database of the same name is not the one that this build was asked for.
    if (database.number() != request.database_number) throw not_found("Database does not exist.");
    return database;
  }

  // For messages.
  std::string name() const {
    if (request.database.empty()) return fmt::format("The index job `{}`", attempt.id);
    return fmt::format("The build of `{}` in `{}`", request.design_document, request.database);
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
        .string(utf8_prefix(request.design_document, kMaxShownBytes))
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
      slots_(options.threads, clock),
      acceptor_(queue, store, clock, [this](std::vector<jobs::DueJob>& due) { slots_.order(due); }) {}

void Builder::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  acceptor_.interrupt();
}

Builder::~Builder() {
  stop();
  for (auto& thread : threads_) thread.join();
}

void Builder::start(std::string_view worker_id) {
  worker_ = monitor_.add(kBackgroundRole, worker_id, "{}");
  for (std::size_t i = 0; i < threads(); ++i) {
    threads_.emplace_back([this] { work(); });
    pthread_setname_np(threads_.back().native_handle(), "builder");
  }
}

// One of the idle threads, until it has its job or the transaction that was to take one has come to nothing.
class Builder::Claim {
 public:
  explicit Claim(Builder& builder) : builder_(builder) {}
  ~Claim() {
    // Its transaction has failed for good. If that was for want of an answer, the commit may have been made
    // or be made yet: then the job has nobody to run it. (After a failure that is tried again it was not
    // made.)
    if (job_ && std::uncaught_exceptions() > 0) builder_.acceptor_.give_back_later({&*job_, 1}, true);
    std::lock_guard lock(builder_.mutex_);
    --builder_.claimed_;
    builder_.changed_.notify_all();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  void take(jobs::AcceptedJob job) { job_ = std::move(job); }
  void hand_over() {
    std::lock_guard lock(builder_.mutex_);
    builder_.taken_.push_back(*std::move(job_));
    job_.reset();
  }

 private:
  Builder& builder_;
  std::optional<jobs::AcceptedJob> job_;
};

void Builder::take_in(kv::Transaction& tx, std::string_view type) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || claimed_ + taken_.size() >= idle_) return;
    ++claimed_;
  }
  const auto claim = std::make_shared<Claim>(*this);
  const std::vector<std::string> types{std::string(type)};
  std::vector<jobs::Taker> takers{{.worker = worker(), .must_exist = false}};
  jobs::deal(queue_, tx, types, std::nullopt, takers, nullptr,
             [this](std::vector<jobs::DueJob>& due) { slots_.order(due); });
  if (takers.front().jobs.empty()) return;
  claim->take(std::move(takers.front().jobs.front()));
  tx.after_commit([claim] { claim->hand_over(); });
}

void Builder::pause() {
  std::unique_lock lock(mutex_);
  clock_.wait_until(lock, changed_, clock_.now() + std::chrono::seconds(1),
                    [this] { return stopping_.load(); });
}

void Builder::work() {
  for (;;) {
    try {
      const auto job = next_job();
      if (job) {
        ++busy_;
        run(*job);
        --busy_;
      } else if (stopping_) {
        return;
      }
    } catch (const Error& error) {
      log::error("Index jobs could not be accepted, which is tried again in a second: {}", error.what());
      pause();
    }
  }
}

// Waits for one; none if there is nothing to wait for any more.
std::optional<jobs::AcceptedJob> Builder::next_job() {
  std::unique_lock lock(mutex_);
  ++idle_;
  // A thread that was claimed stays.
  clock_.wait_until(lock, changed_, MonotonicTime::max(),
                    [this] { return !taken_.empty() || (idle_ > claimed_ && (stopping_ || !accepting_)); });
  --idle_;
  if (!taken_.empty()) {
    auto job = std::move(taken_.front());
    taken_.pop_front();
    return job;
  }
  if (stopping_) return std::nullopt;
  accepting_ = true;
  lock.unlock();
  // Another thread waits for the next one.
  const absl::Cleanup leave = [this] {
    std::lock_guard again(mutex_);
    accepting_ = false;
    changed_.notify_all();
  };
  return accept_job();
}

std::optional<jobs::AcceptedJob> Builder::accept_job() {
  std::vector<std::string> types;
  for (const auto& kind : kinds_) types.emplace_back(kind->name());
  auto jobs = acceptor_.accept(types, {.limit = 1, .worker = worker()}, MonotonicTime::max());
  if (jobs.empty()) return std::nullopt;
  return std::move(jobs.front());
}

// The worker may have been evicted and registered again in between: jobs are accepted for its name.
workers::WorkerRef Builder::worker() const {
  const auto ref = worker_->ref();
  return {ref.role, ref.id, {}};
}

void Builder::run(const jobs::AcceptedJob& job) {
  Build state;
  state.attempt = job.attempt();
  state.priority = job.job.priority;
  state.started_on = clock_.wall_ms() / 1000;
  state.began = clock_.now();
  const BrokenOff before = take_broken_off(state.attempt);
  std::atomic<bool> deleted = false;  // the database, as far as was heard
  const auto slot = slots_.begin({.type = state.attempt.type,
                                  .job = state.attempt.id,
                                  .database = std::string(database_of_build(state.attempt.id)),
                                  .priority = state.priority,
                                  .started_at = clock_.wall_ms()},
                                 state.stop);
  const absl::Cleanup leave = [&] {
    if (slot) slots_.end(*slot);
    if (slots_.take_left_out()) acceptor_.look_again();
  };
  // The worker lives, so nobody misses the job.
  const auto break_off = [&](const std::exception& error) {
    log::warning("{} was broken off; it is given back as soon as possible: {}", state.name(), error.what());
    pause();
    // If it is to stop, its worker's end gives all back.
    if (!stopping_) acceptor_.give_back({&job, 1});
  };
  try {
    // Two threads have found the last slot free.
    if (!slot) return give_back(state);
    state.slot = *slot;
    state.limits = {.urgent = slots_.is_small(*slot),
                    .on_slow =
                        [this, id = *slot] {
                          if (!slots_.enlarge(id)) throw NotSmall();
                        },
                    .stop = state.stop.get_token()};
    try {
      state.request = BuildRequest::parse(job.data);
      slots_.set_design_document(*slot, state.request.design_document);
      const DeletionWatch watch(catalog_.bus(), state.request.database, [&] {
        deleted = true;
        slots_.stop(state.request.database);
      });
      build(state);
    } catch (const NotSmall&) { give_back(state); } catch (const Error& error) {
      if (error.name() == "halt") throw;
      if (stopping_ && error.status() == 503) return give_back(state);
      if (deleted && error.status() == 503) return end_stopped(state);
      if (is_of_the_moment(error) && may_break_off(state, before)) throw;
      give_up(state, error);
    } catch (const std::exception& error) { give_up(state, internal_error(error.what())); }
  } catch (const Error& error) {
    // Somebody else has the job, or nobody needs it any more.
    if (error.name() == "halt")
      return log::info("{} was left to others, as far as it is needed: {}", state.name(), error.what());
    break_off(error);
  } catch (const std::exception& error) { break_off(error); }
}

void Builder::give_up(Build& state, const Error& error) {
  bool gone = false;
  store_.run([&](kv::Transaction& tx) {
    gone = is_gone(state, tx);
    if (gone) return jobs::finish(queue_, tx, state.attempt);
    if (!state.keys) return jobs::fail(queue_, tx, state.attempt, error.what());
    fail_build(queue_, tx, *state.keys, state.attempt, error.what(), error.name() == kFunctionFailed,
               state.worked);
  });
  if (gone) return log::info("{} ends with the database.", state.name());
  log::warning("{} failed; it goes on when ken or a query asks for it again: {}", state.name(), error.what());
}

// Its database was deleted, or one of that name that was there before.
void Builder::end_stopped(Build& state) {
  const bool gone = store_.run([&](kv::Transaction& tx) {
    if (!is_gone(state, tx)) return false;
    jobs::finish(queue_, tx, state.attempt);
    return true;
  });
  if (!gone) return give_back(state);
  log::info("{} ends with the database.", state.name());
}

// Notes that the store broke a build off; false if it is to fail for that.
bool Builder::may_break_off(const Build& state, const BrokenOff& before) {
  const MonotonicTime now = clock_.now();
  BrokenOff after{1, now, now};
  if (!state.worked && before.count > 0 && now - before.last < kBrokenOffLapse)
    after = {before.count + 1, before.first, now};
  if (after.count >= kMaxBrokenOff && now - after.first >= kMaxBrokenOffFor) return false;
  std::lock_guard lock(mutex_);
  std::erase_if(broken_off_, [&](const auto& entry) { return now - entry.second.last >= kBrokenOffLapse; });
  broken_off_.insert_or_assign({state.attempt.type, state.attempt.id}, after);
  return true;
}

// What is known of the job from before; it is forgotten unless it is broken off again.
Builder::BrokenOff Builder::take_broken_off(const jobs::Attempt& attempt) {
  std::lock_guard lock(mutex_);
  const auto found = broken_off_.extract({attempt.type, attempt.id});
  return found.empty() ? BrokenOff() : found.mapped();
}

// Whether its database was deleted.
bool Builder::is_gone(const Build& state, kv::Transaction& tx) {
  if (state.request.database.empty()) return false;
  const auto database = catalog_.find(tx, state.request.database);
  return !database || database->number() != state.request.database_number;
}

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
      kv::Expectation reads;
      reads.key(state.keys->state());
      reads.key(state.keys->failures());
      tx.expect(reads);
    }
    state.written = state.read = read_sequence(tx, *state.keys);
    state.failed_before = tx.get(state.keys->failures(), kv::Isolation::snapshot).has_value();
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
bool Builder::do_more_work(Build& state, bool only_begun) {
  while (!state.cancelled && state.wanted) {
    const auto work = state.index->more_work(store_, *state.keys, only_begun);
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
  const bool turn_is_over = clock_.now() - state.began >= options_.turn;
  const auto due =
      store_.run([&](kv::Transaction& tx) { return jobs::due_jobs(queue_, tx, state.attempt.type); });
  const bool free_thread = worker_ != nullptr && busy_ < threads();
  return slots_.gives_way(state.slot, due, free_thread, turn_is_over);
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
    docs::expect_trees(tx, database, conflicting);
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
