#include "divan/index/triggers/trigger_batch.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/sequence.h"
#include "divan/index/triggers/state.h"

namespace divan::index::triggers {
namespace {

// A transaction takes no further documents when it has this many jobs, or approximate bytes of rows.
constexpr std::size_t kFullJobs = 500;
constexpr std::size_t kFullBytes = 1'500'000;
// With those of one more document it is smaller than the store's limit.
static_assert(kFullBytes + kMaxJobsBytes < 8'000'000);
constexpr std::int64_t kMicroseconds = 1'000'000;

// Bytes of the rows that a job has. A header that contains the data is copied to the job's entry.
std::size_t row_bytes(const TriggeredJob& job, std::size_t data) {
  constexpr std::size_t kRows = 600, kNames = 6;
  return 2 * data + kNames * (job.type.size() + job.id.value_or("").size()) + kRows;
}

// Spaces the due times of jobs evenly: at most `per_second` of them become due in a second.
class RateLimiter {
 public:
  RateLimiter(std::optional<std::string> stored, std::int64_t per_second, std::int64_t now_ms)
      : interval_((kMicroseconds + per_second - 1) / per_second), now_(now_ms * 1000), next_(now_) {
    if (!stored) return;
    kv::tuple::Reader reader(*stored);
    const auto next = reader.take_int(), written_at = reader.take_int();
    if (!next || !written_at) throw internal_error("The rate limiter of a trigger in the store is damaged.");
    // If the clock was set back, the stored times are moved by the same amount.
    next_ = std::max(now_, *next - std::max<std::int64_t>(*written_at - now_, 0));
  }

  // When the next job may become due, in milliseconds since 1970.
  std::int64_t take() {
    const std::int64_t at = next_;
    next_ += interval_;
    return at / 1000;
  }
  std::string stored() const {
    std::string value;
    kv::tuple::Packer(value).integer(next_).integer(now_);
    return value;
  }

 private:
  const std::int64_t interval_;  // microseconds, as all times here
  const std::int64_t now_;
  std::int64_t next_;
};

}  // namespace

void TriggerBatch::add_document(std::string id) {
  const SourceDocument& source = source_[documents_.size()];
  Document& document = documents_.emplace_back();
  document.id = std::move(id);
  json::Writer writer(document.origin);
  writer.begin_object().key("db").string(origin_.database).key("ddoc").string(origin_.design_document);
  writer.key("name").string(definition_->name).key("id").string(document.id);
  writer.key("seq").string(docs::to_sequence(source.change.sequence));
  // Its row, and a record of a failure.
  document.bytes = 4 * document.id.size() + 2 * LeftOut::kMaxReasonBytes;
}

void TriggerBatch::add_failure(std::size_t index, std::string_view reason) {
  Document& document = documents_[index];
  if (document.failure) return;
  ++failures_;
  document.failure = LeftOut{static_cast<std::int64_t>(document.jobs.size()),
                             std::string(utf8_prefix(reason, LeftOut::kMaxReasonBytes))};
  jobs_ -= document.jobs.size();
  document.jobs.clear();
}

void TriggerBatch::add_job(std::size_t index, TriggeredJob job) {
  Document& document = documents_[index];
  if (document.failure) return;
  if (queue_.is_own_type(job.type))
    return add_failure(index, fmt::format("Jobs of type `{}` are the server's own.", job.type));
  if (document.jobs.size() == kMaxJobs)
    return add_failure(index, fmt::format("The document leads to more than {} jobs.", kMaxJobs));
  const std::size_t bytes = row_bytes(job, job.data.size() + document.origin.size());
  if (document.bytes + bytes > kMaxJobsBytes)
    return add_failure(index, fmt::format("The document's jobs exceed {} bytes.", kMaxJobsBytes));
  document.bytes += bytes;
  bytes_ += bytes;
  ++jobs_;
  document.jobs.push_back(std::move(job));
}

std::size_t TriggerBatch::prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                                  const IndexedSoFar&) {
  begin_ = end_ = first;
  std::size_t jobs = 0, bytes = 0;
  while (end_ < documents_.size() && jobs < kFullJobs && bytes < kFullBytes) {
    jobs += documents_[end_].jobs.size();
    bytes += documents_[end_].bytes;
    ++end_;
  }
  store.run([&](kv::Transaction& tx) { read_before(tx, keys); });
  return end_;
}

void TriggerBatch::read_before(kv::Transaction& tx, const IndexKeys& keys) {
  const auto record = read_record(tx, keys, kv::Isolation::snapshot);
  std::vector<std::string> seen_keys, failure_keys;
  const bool tracks = definition_->tracks_documents();
  const bool has_failures = lacks_rows(tx, keys);
  for (std::size_t i = begin_; i < end_; ++i) {
    if (tracks) seen_keys.push_back(seen_key(keys, documents_[i].id));
    if (has_failures) failure_keys.push_back(left_out_key(keys, documents_[i].id));
  }
  const auto seen = tx.get_many(seen_keys, kv::Isolation::snapshot);
  const auto failures = tx.get_many(failure_keys, kv::Isolation::snapshot);
  const auto tracked_since = record ? record->tracked_since : kv::Versionstamp();
  for (std::size_t i = begin_; i < end_; ++i) {
    Document& document = documents_[i];
    find_event(document, source_[i], tracks ? seen[i - begin_] : std::nullopt, tracked_since);
    document.failure_before.reset();
    if (has_failures && failures[i - begin_])
      document.failure_before = decode_left_out(*failures[i - begin_]);
    if (!document.fires) document.failure.reset();
  }
}

void TriggerBatch::find_event(Document& document, const SourceDocument& source,
                              const std::optional<std::string>& seen,
                              const kv::Versionstamp& tracked_since) const {
  const docs::Change& change = source.change;
  const bool exists = !change.deleted;
  document.event.reset();
  document.now_exists.reset();
  document.fires = exists;
  if (!definition_->tracks_documents()) return;
  // Without a row, the document either existed before the trigger or is new.
  const bool was_deleted = change.deleted && change.body_sequence <= tracked_since;
  const bool existed = decode_seen(seen).value_or(tracked_since != kv::Versionstamp() && !was_deleted &&
                                                  source.exists_since <= tracked_since);
  if (!seen || existed != exists) document.now_exists = exists;
  if (exists) {
    document.event = existed ? Event::updated : Event::created;
  } else if (existed) {
    document.event = Event::deleted;
  }
  // A purge is not a change of the document.
  if (change.winner.generation == 0) document.event.reset();
  document.fires = document.event && definition_->fires_on(*document.event);
}

// With the member that says where the job comes from.
std::string TriggerBatch::data_of(const Document& document, const TriggeredJob& job) {
  std::string data = job.data;
  data.pop_back();
  if (data.size() > 1) data += ',';
  data += fmt::format("\"{}\":{}", kOriginMember, document.origin);
  if (document.event) data += fmt::format(R"(,"event":"{}")", event_name(*document.event));
  return data += "}}";
}

// Such a job keeps its due time.
bool TriggerBatch::is_pending(kv::Transaction& tx, const TriggeredJob& job) const {
  const auto present = job.id ? queue_.find(tx, job.type, *job.id) : std::nullopt;
  return present && present->state == jobs::State::pending;
}

void TriggerBatch::add_jobs(kv::Transaction& tx, const IndexKeys& keys) const {
  struct Added {
    const TriggeredJob* job;
    std::string data;
  };
  std::vector<Added> added;
  for (std::size_t i = begin_; i < end_; ++i) {
    if (!documents_[i].fires) continue;
    for (const TriggeredJob& job : documents_[i].jobs) added.push_back({&job, data_of(documents_[i], job)});
  }
  if (added.empty()) return;
  const std::int64_t now = queue_.clock().wall_ms();
  std::optional<RateLimiter> rate;
  if (definition_->max_per_second > 0)
    rate.emplace(tx.get(rate_key(keys), kv::Isolation::snapshot), definition_->max_per_second, now);
  for (std::size_t first = 0, last = 0; first < added.size(); first = last) {
    std::vector<jobs::Queue::NewJob> jobs;
    for (; last < added.size() && added[last].job->type == added[first].job->type; ++last) {
      const TriggeredJob& job = *added[last].job;
      jobs::Queue::NewJob& next =
          jobs.emplace_back(jobs::Queue::NewJob{.id = job.id, .data = added[last].data});
      next.options.priority = job.priority;
      const bool needs_time = rate && !is_pending(tx, job);
      const std::int64_t at = (needs_time ? std::max(rate->take(), now) : now) + job.delay;
      if (at > now) next.options.scheduled_at = at;
    }
    queue_.add_all(tx, added[first].job->type, jobs);
  }
  if (rate) tx.set(rate_key(keys), rate->stored());
  tx.add(jobs_key(keys), static_cast<std::int64_t>(added.size()));
}

// A job that workers can accept at once; null if there is none.
const TriggeredJob* TriggerBatch::first_due() const {
  if (definition_->max_per_second > 0) return nullptr;
  for (std::size_t i = begin_; i < end_; ++i) {
    if (!documents_[i].fires) continue;
    for (const TriggeredJob& job : documents_[i].jobs) {
      if (job.delay == 0) return &job;
    }
  }
  return nullptr;
}

// If workers wait for jobs, the transaction that adds them also accepts them, as that of a request does.
void TriggerBatch::commit(const std::function<void()>& transaction) {
  const auto* const due = acceptor_ != nullptr ? first_due() : nullptr;
  poll_ = due != nullptr ? acceptor_->poll_for_add(due->type) : nullptr;
  if (!poll_) return transaction();
  std::exception_ptr failure;
  try {
    transaction();
  } catch (...) { failure = std::current_exception(); }
  const auto poll = std::move(poll_);
  const bool again = acceptor_->end_add_poll(*poll, failure);
  acceptor_->release_undelivered({});
  if (again) return transaction();
  if (failure) std::rethrow_exception(failure);
}

void TriggerBatch::write(kv::Transaction& tx, const IndexKeys& keys) const {
  const auto record = read_record(tx, keys);
  if (!record || record->digest != definition_->digest) throw IndexChanged();
  for (std::size_t i = begin_; i < end_; ++i) {
    const Document& document = documents_[i];
    if (source_[i].change.winner.generation == 0) {
      if (definition_->tracks_documents()) tx.clear(seen_key(keys, document.id));
    } else if (document.now_exists) {
      tx.set(seen_key(keys, document.id), seen_value(*document.now_exists));
    }
    write_left_out(tx, keys, document.id, document.failure_before, document.failure);
    if (!document.failure) continue;
    std::string error;
    json::Writer(error)
        .begin_object()
        .key("id")
        .string(document.id)
        .key("reason")
        .string(document.failure->reason)
        .key("time")
        .number(queue_.clock().wall_ms())
        .end_object();
    tx.set(last_error_key(keys), error);
  }
  add_jobs(tx, keys);
  if (poll_) acceptor_->run_poll(*poll_, tx);
}

}  // namespace divan::index::triggers
