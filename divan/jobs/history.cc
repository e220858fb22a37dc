#include "divan/jobs/history.h"

#include "divan/base/check.h"
#include "divan/base/json.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

Error damaged() { return internal_error("A row of a job's history in the store is damaged."); }

template <class Value>
Value required(std::optional<Value> value) {
  if (!value) throw damaged();
  return *std::move(value);
}

std::optional<Outcome> outcome_of(State state) {
  switch (state) {
    case State::finished: return Outcome::finished;
    case State::failed: return Outcome::failed;
    case State::cancelled: return Outcome::cancelled;
    case State::pending:
    case State::running: break;
  }
  return std::nullopt;
}

void append_attempt(json::Writer& writer, const PastAttempt& attempt) {
  writer.begin_object().key("attempt").number(attempt.attempt).key("epoch").number(attempt.epoch);
  writer.key("started_at").number(attempt.started_at);
  if (attempt.ended_at) writer.key("ended_at").number(*attempt.ended_at);
  if (!attempt.worker_id.empty()) {
    writer.key("worker").begin_object().key("role").string(attempt.worker_role);
    writer.key("id").string(attempt.worker_id).end_object();
  }
  if (attempt.outcome) writer.key("outcome").string(outcome_name(*attempt.outcome));
  if (!attempt.error.empty()) writer.key("error").string(attempt.error);
  writer.end_object();
}

}  // namespace

PastAttempt decode_attempt(std::int64_t epoch, std::string_view row) {
  Reader reader(row);
  PastAttempt attempt;
  attempt.epoch = epoch;
  attempt.attempt = required(reader.take_int());
  attempt.started_at = required(reader.take_int());
  attempt.ended_at = required(reader.take_int());
  attempt.worker_role = required(reader.take_string());
  attempt.worker_id = required(reader.take_string());
  const auto outcome = required(reader.take_int());
  if (outcome < 0 || outcome > static_cast<std::int64_t>(Outcome::cancelled)) throw damaged();
  attempt.outcome = static_cast<Outcome>(outcome);
  attempt.error = required(reader.take_string());
  if (!reader.at_end()) throw damaged();
  return attempt;
}

void record_attempt(kv::Transaction& tx, const Job& job, Job& changed, Outcome outcome, std::int64_t ended_at,
                    std::string_view error) {
  DIVAN_CHECK(job.type == changed.type && job.id == changed.id, "an attempt is recorded for another job");
  const JobKey prefix = history_key(job);
  if (changed.history >= kMaxHistory) {
    // Every transaction that changes these rows has read the job's header, so they cannot change
    // concurrently.
    std::string oldest;
    tx.scan(prefix.range(), {.limit = 1, .isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view) {
              oldest = key;
              return false;
            });
    if (!oldest.empty()) tx.clear(oldest);
  } else {
    ++changed.history;
  }
  std::string row;
  Packer(row)
      .integer(job.attempt)
      .integer(job.started_at)
      .integer(ended_at)
      .string(job.worker_role)
      .string(job.worker_id)
      .integer(static_cast<int>(outcome))
      .string(error);
  tx.set(JobKey(prefix).integer(job.epoch).key(), row);
}

void record_last_attempt(kv::Transaction& tx, Job& job) {
  const auto outcome = outcome_of(job.state);
  if (!outcome || job.attempt == 0) return;
  // The last attempt has a row if the job was cancelled after it.
  if (job.history > 0 && tx.get(JobKey(history_key(job)).integer(job.epoch).key(), kv::Isolation::snapshot))
    return;
  record_attempt(tx, job, job, *outcome, job.finished_at, *outcome == Outcome::failed ? job.last_error : "");
}

std::vector<PastAttempt> attempts_of(kv::Transaction& tx, const Job& job) {
  std::vector<PastAttempt> attempts;
  if (job.history > 0) {
    const JobKey prefix = history_key(job);
    tx.scan(prefix.range(), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view row) {
              attempts.push_back(
                  decode_attempt(required(Reader(key.substr(prefix.key().size())).take_int()), row));
              return true;
            });
  }
  // A pending job's last attempt has a row.
  if (job.state == State::pending || job.attempt == 0) return attempts;
  PastAttempt last{.attempt = job.attempt,
                   .epoch = job.epoch,
                   .started_at = job.started_at,
                   .ended_at = std::nullopt,
                   .worker_role = job.worker_role,
                   .worker_id = job.worker_id,
                   .outcome = outcome_of(job.state),
                   .error = job.state == State::failed ? job.last_error : ""};
  if (last.outcome) last.ended_at = job.finished_at;
  // An attempt that ended before its job was cancelled has a row.
  if (attempts.empty() || attempts.back().epoch != last.epoch) attempts.push_back(std::move(last));
  return attempts;
}

std::string history_json(const std::vector<PastAttempt>& attempts) {
  std::string out;
  json::Writer writer(out);
  writer.begin_array();
  for (const auto& attempt : attempts) append_attempt(writer, attempt);
  writer.end_array();
  return out;
}

}  // namespace divan::jobs
