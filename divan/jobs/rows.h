// How jobs lie in the store, and the one way to change a job's state there: everything that must change
// together does.
//
// A job is a header row and data rows. By its state it has one more entry: among the pending ones of its type
// (in the order in which they run), among the running ones (of its worker, or, without a worker, of its type
// in the order of their last sign of life), or among those that ended in its state (in the order of their
// end). One that runs and has a deadline has another entry for that. A job without its entries would be
// stranded; so headers are only written by link() and relink(). docs/keyspace.md
#pragma once

#include "divan/jobs/types.h"
#include "divan/kv/store.h"
#include "divan/kv/tuple_packer.h"

namespace divan::jobs {

/// The key ("jobs", parts...), begun.
class JobKey {
 public:
  explicit JobKey(std::string_view kind) { kv::tuple::Packer(key_).string("jobs").string(kind); }
  JobKey& string(std::string_view text) {
    kv::tuple::Packer(key_).string(text);
    return *this;
  }
  JobKey& integer(std::int64_t number) {
    kv::tuple::Packer(key_).integer(number);
    return *this;
  }
  const std::string& key() const { return key_; }
  /// The keys that continue this one.
  kv::KeyRange range() const { return kv::below(key_); }

 private:
  std::string key_;
};

/// Hot ranges are split into shards on a cluster; the embedded store has one.
inline constexpr std::int64_t kShard = 0;

/// A transaction of this size changes no further job of many: names, data and histories may be long.
inline constexpr std::size_t kFullTransaction = 4'000'000;

/// A job's header, or nothing. With serializable isolation the transaction conflicts with every change of the
/// job.
std::optional<Job> read_job(kv::Transaction& tx, std::string_view type, std::string_view id,
                            kv::Isolation isolation = kv::Isolation::serializable);

/// What read_job() and, for most jobs, read_data() read, for Transaction::prefetch().
void prefetch_job(kv::Prefetch& reads, std::string_view type, std::string_view id);

/// A job from its header row. Throws an internal error if it is damaged.
Job decode_job(std::string_view type, std::string_view id, std::string_view header);

/// Returns true if a header row is of a layout that only newer versions of Divan know.
bool is_of_newer_layout(std::string_view header);

/// The key of the one entry that the job has in its state; of a running job that has none, its header's
/// versionstamp being lost, a key that is never there.
std::string entry_key(const Job& job);

/// The key of the entry by which the deadline of a running job is found; empty if it has none.
std::string deadline_key(const Job& job);

/// How long a job that runs without a worker may be silent, if that is not its type's timeout: the value of
/// its entry.
std::string activity_value(const Job& job);
/// Reads that; nullopt if it is the type's. Throws an internal error if it is damaged.
std::optional<Duration> decode_activity_value(std::string_view value);

/// Puts a job that is not in the store there, in its state: header, entry, count; a pending one wakes
/// acceptors.
void link(kv::Transaction& tx, const Job& job);

/// Takes the job out of the store: its header, its entries, its part of the counts, its data, result and
/// history.
void unlink(kv::Transaction& tx, const Job& job);

/// Where the store has a job.
struct JobPlace {
  State state;
  std::string entry{};     // empty: none
  std::string deadline{};  // empty: none
};
inline JobPlace place_of(const Job& job) { return {job.state, entry_key(job), deadline_key(job)}; }

/// Makes what the store has of a job, which was at `before`, what `job` says.
void relink(kv::Transaction& tx, const Job& job, const JobPlace& before);

/// Changes a job in the store. A job that runs without a worker keeps its sign of life, unless `change`
/// resets its `activity` to give another one. What `change` throws leaves the store as it is if it has
/// written nothing.
template <class Change>
void transition(kv::Transaction& tx, Job& job, Change&& change) {
  const JobPlace before = place_of(job);
  job.old_entry = false;
  change(job);
  relink(tx, job, before);
}

enum class DataSlot {
  current,
  next,  // of the run after the present one, when it was resubmitted
};
/// The beginning of the keys of a job's former attempts.
JobKey history_key(const Job& job);
/// The beginning of the keys of a job's data.
JobKey data_key(const Job& job, DataSlot slot);
/// The key of a piece of a job's data.
std::string chunk_key(const Job& job, DataSlot slot, std::int64_t chunk);

// The job's header says how many rows its data have, so whoever reads or writes data has read it or writes
// it.

std::string read_data(kv::Transaction& tx, const Job& job, DataSlot slot = DataSlot::current);
/// Throws 413 beyond kMaxDataBytes.
void check_data(std::string_view json);
/// Writes the data's rows and the number of them into `job`, which is to be linked after that. Throws 413 as
/// check_data() does, before anything is written.
void write_data(kv::Transaction& tx, Job& job, std::string_view json, DataSlot slot = DataSlot::current);
/// The result of the job's last finished run; nullopt if there is none.
std::optional<std::string> read_result(kv::Transaction& tx, const Job& job);
/// Writes the result's rows and the number of them into `job`, which is to be linked after that; nullopt is
/// none. Throws 413 as check_data() does.
void write_result(kv::Transaction& tx, Job& job, std::optional<std::string_view> json);
/// The beginning of the keys of a job's result.
JobKey result_key(const Job& job);
/// The data of the next run, which there is from now on: nothing stands for those that the present run
/// leaves.
void write_next_data(kv::Transaction& tx, Job& job, std::optional<std::string_view> json);
/// The next run, for which the job was resubmitted, becomes the present one; the job is to be linked after
/// that. Answers when it was asked for.
std::int64_t take_next_run(kv::Transaction& tx, Job& job);
/// The job is to run no more than its present run; it is to be linked after that.
void drop_next_run(kv::Transaction& tx, Job& job);

/// The settings of a type.
std::string type_key(std::string_view type);
/// The counter that changes with the settings of any type.
std::string types_key();
/// The types that have entries of a kind that begins with the type; as many reads as there are such types.
/// Damaged keys are left out.
std::vector<std::string> types_with(kv::Transaction& tx, std::string_view kind);
/// What acceptors of a type whose jobs may not all run at once conflict over, with one another and with
/// nobody else: each reads and writes these keys by name, of which there are none.
kv::KeyRange turn_range(std::string_view type);
/// The counter that changes whenever a job of the type becomes pending, for watches.
std::string wake_key(std::string_view type);
std::string count_key(std::string_view type, State state);

}  // namespace divan::jobs
