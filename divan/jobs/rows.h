// The rows of jobs in the store, and the functions that change them consistently.
//
// A job has a header row, data rows unless its data are small, and one entry, which is a row that lists it in
// its state: among the pending jobs of its type (in the order in which they run), among the running ones (of
// its worker, or, if it was accepted without a registered worker, of its type in the order of their last
// reports), or among those that ended in its state (in the order of their ends). A running job with a
// deadline has another entry for that. The entry of a pending job has a copy of its header, so that an accept
// needs no other row. Jobs that a worker has accepted together share an entry, their batch, which counts
// those of them that are running. A job without its entries would never be found; so headers are only written
// by link() and relink(). See docs/keyspace.md.
#pragma once

#include "divan/jobs/types.h"
#include "divan/kv/store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::jobs {

/// Builds a key ("jobs", parts...).
class JobKey {
 public:
  explicit JobKey(std::string_view kind) {
    key_.reserve(kReserved);
    kv::tuple::Packer(key_).string("jobs").string(kind);
  }
  JobKey& string(std::string_view text) {
    kv::tuple::Packer(key_).string(text);
    return *this;
  }
  JobKey& integer(std::int64_t number) {
    kv::tuple::Packer(key_).integer(number);
    return *this;
  }
  const std::string& key() const { return key_; }
  /// The range of keys with this prefix.
  kv::KeyRange range() const { return kv::below(key_); }

 private:
  static constexpr std::size_t kReserved = 110;  // more than most keys

  std::string key_;
};

/// An element of several keys; always 0.
inline constexpr std::int64_t kShard = 0;

/// The largest data in a header, in bytes of JSON. A row of their own costs as much as some hundred bytes
/// that are written with each change of the job.
inline constexpr std::size_t kMaxDataInHeader = 400;

/// A transaction of this size changes no further jobs: names, data and histories may be long.
inline constexpr std::size_t kFullTransaction = 4'000'000;

/// Reads a job's header; nullopt if it is missing. With serializable isolation the transaction conflicts with
/// every change of the job.
std::optional<Job> read_job(kv::Transaction& tx, std::string_view type, std::string_view id,
                            kv::Isolation isolation = kv::Isolation::serializable);

/// read_job() of a job whose entry among the pending ones was read: decodes the copy of the header in it, and
/// conflicts with every change of the job without reading the header. `copy` may be empty.
std::optional<Job> read_pending_job(kv::Transaction& tx, std::string_view type, std::string_view id,
                                    std::string_view copy);
/// Adds the reads of read_pending_job() and, for most jobs, read_data() to a prefetch.
void prefetch_pending_job(kv::Prefetch& reads, std::string_view type, std::string_view id,
                          std::string_view copy);

/// Adds the read of read_job() to a prefetch.
void prefetch_header(kv::Prefetch& reads, std::string_view type, std::string_view id);
/// Adds the reads of read_job() and, for most jobs, read_data() to a prefetch.
void prefetch_job(kv::Prefetch& reads, std::string_view type, std::string_view id);

/// Decodes a job's header row. Throws internal_error if it is damaged.
Job decode_job(std::string_view type, std::string_view id, std::string_view header);

/// Returns true if the job has a header row, which may be damaged. Reads a snapshot.
bool job_exists(kv::Transaction& tx, std::string_view type, std::string_view id);

/// Returns true if a header row is of a layout that only newer versions of Divan know.
bool is_of_newer_layout(std::string_view header);

/// The key of the entry of the job's state; for a job in a batch, that of the batch's counter. For a running
/// job whose header lacks its versionstamp, a key that never exists.
std::string entry_key(const Job& job);

/// Returns true if the job is in a batch of its worker.
inline bool is_in_batch(const Job& job) { return job.state == State::running && job.batch != 0; }
/// The prefix of the rows of a worker's batches.
JobKey batches_key(std::string_view role, std::string_view worker);
/// The key of the counter of the running jobs in a batch.
std::string batch_count_key(std::string_view role, std::string_view worker, std::int64_t batch);

/// What is reported of a damaged entry of the running jobs.
inline constexpr std::string_view kDamagedRunningEntry =
    "An entry of the running jobs is damaged and skipped.";

/// The key of the entry for a running job's deadline; empty if it has none.
std::string deadline_key(const Job& job);

/// The value of the entry of a running job without a registered worker: its timeout, if that differs from its
/// type's.
std::string activity_value(const Job& job);
/// Decodes that value; nullopt: the type's timeout. Throws internal_error if it is damaged.
std::optional<Duration> decode_activity_value(std::string_view value);

/// Writes a new job: header, entry and count; a pending job wakes acceptors.
void link(kv::Transaction& tx, const Job& job);

/// Removes a job: its header, entries, data, result and history; updates the counts.
void unlink(kv::Transaction& tx, const Job& job);

/// The state and entries of a job in the store.
struct JobEntries {
  State state;
  std::string entry{};     // empty: none
  std::string deadline{};  // empty: none
  bool in_batch = false;
};
inline JobEntries entries_of(const Job& job) {
  return {job.state, entry_key(job), deadline_key(job), is_in_batch(job)};
}
/// Removes the entry of a job's state.
void remove_entry(kv::Transaction& tx, std::string_view key, bool in_batch);

/// Writes a changed job, whose entries were `before`.
void relink(kv::Transaction& tx, const Job& job, const JobEntries& before);

/// Changes a job in the store. A running job without a registered worker keeps the time of its last report,
/// unless `change` resets its `activity`, which then gets the versionstamp of this transaction. If `change`
/// throws without having written, the store is unchanged.
template <class Change>
void transition(kv::Transaction& tx, Job& job, Change&& change) {
  const JobEntries before = entries_of(job);
  job.old_entry = false;
  change(job);
  relink(tx, job, before);
}

enum class DataSlot {
  current,
  next,  // of the run after the current one, if the job was resubmitted
};
/// The prefix of the keys of a job's former attempts.
JobKey history_key(const Job& job);
/// The prefix of the keys of a job's data.
JobKey data_key(const Job& job, DataSlot slot);
/// The key of a chunk of a job's data.
std::string chunk_key(const Job& job, DataSlot slot, std::int64_t chunk);

// The job's header contains its data or the number of their rows, so callers that read or write data must
// have read the header, and write it.

std::string read_data(kv::Transaction& tx, const Job& job, DataSlot slot = DataSlot::current);
/// Throws too_large (413) if the data exceed kMaxDataBytes.
void check_data(std::string_view json);
/// Writes the data into `job`, which must be linked afterwards, or, if they exceed kMaxDataInHeader, into
/// rows. Throws like check_data(), before anything is written.
void write_data(kv::Transaction& tx, Job& job, std::string_view json, DataSlot slot = DataSlot::current);
/// The result of the job's last finished run; nullopt if there is none.
std::optional<std::string> read_result(kv::Transaction& tx, const Job& job);
/// Writes the result's rows and sets their number in `job`, which must be linked afterwards; nullopt: no
/// result. Throws like check_data().
void write_result(kv::Transaction& tx, Job& job, std::optional<std::string_view> json);
/// The prefix of the keys of a job's result.
JobKey result_key(const Job& job);
/// Writes the data of the next run of a resubmitted job; nullopt: the data that the current run leaves.
void write_next_data(kv::Transaction& tx, Job& job, std::optional<std::string_view> json);
/// Makes the next run of a resubmitted job the current one; the job must be linked afterwards. Returns the
/// next run's time.
std::int64_t take_next_run(kv::Transaction& tx, Job& job);
/// Removes the next run; the job must be linked afterwards.
void drop_next_run(kv::Transaction& tx, Job& job);

/// The key of a type's settings.
std::string type_key(std::string_view type);
/// The key of the counter that Maintenance watches. It grows when the settings of any type change, and when a
/// worker that has ended leaves jobs to be reclaimed (worker_jobs.h).
std::string types_key();
/// The types that have entries of a kind whose keys begin with the type. Needs one read per type. Damaged
/// keys are skipped.
std::vector<std::string> types_with(kv::Transaction& tx, std::string_view kind);
/// The conflict range of accepts of a type with `max_running`: each adds it to its read and write conflicts.
/// It contains no keys, so no other transaction conflicts with it.
kv::KeyRange max_running_range(std::string_view type);
/// The key of the counter that changes whenever a job of the type becomes pending, for watches.
std::string wake_key(std::string_view type);
std::string count_key(std::string_view type, State state);

}  // namespace divan::jobs
