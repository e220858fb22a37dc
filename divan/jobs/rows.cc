#include "divan/jobs/rows.h"

#include <fmt/core.h>

#include <utility>

#include "divan/base/check.h"
#include "divan/base/json.h"
#include "divan/kv/chunks.h"

namespace divan::jobs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr std::int64_t kHeaderLayout = 5;
// Lacks `lost`, `limits`, `deadline` and the result; the entry of an ended job does not contain its state.
constexpr std::int64_t kOldHeaderLayout = 3;
// Layout 4 and before lack the data.
constexpr std::int64_t kFirstLayoutWithData = 5;
// The layout of a job in a batch: the number of the batch follows.
constexpr std::int64_t kLayoutInBatch = 6;

// Empty data takes no rows; most jobs of some types have it.
constexpr std::string_view kNoData = "{}";
// The longest timeout of a type or a job.
constexpr std::int64_t kMaxTimeoutMs = 7 * 24 * 3'600'000;
constexpr std::int64_t kMaxChunks = kv::chunk_count(kMaxDataBytes);
constexpr std::size_t kReservedForHeader = 220;  // more than most headers

std::string header_key(std::string_view type, std::string_view id) {
  return JobKey("job").string(type).string(id).key();
}

std::string pending_key(const Job& job) {
  return JobKey("pend")
      .string(job.type)
      .integer(kShard)
      .integer(job.priority)
      .integer(job.due_at)
      .string(job.id)
      .key();
}

std::string worker_key(const Job& job) {
  return JobKey("by_worker")
      .string(job.worker_role)
      .string(job.worker_id)
      .string(job.type)
      .string(job.id)
      .key();
}

constexpr std::string_view kBatchCount = "running";

std::string ended_key(const Job& job) {
  if (job.old_entry) return JobKey("fin").string(job.type).integer(job.finished_at).string(job.id).key();
  return JobKey("end")
      .string(job.type)
      .integer(static_cast<int>(job.state))
      .integer(job.finished_at)
      .string(job.id)
      .key();
}

bool has_worker(const Job& job) { return !job.worker_id.empty(); }

Error damaged() { return internal_error("A job's row in the store is damaged."); }

Error newer_layout(std::int64_t layout) {
  return internal_error(fmt::format(
      "A job's row in the store has layout {}: it was written by a newer version of Divan, or is damaged. "
      "This version reads layouts {} to {}.",
      layout, kOldHeaderLayout, kLayoutInBatch));
}

template <class Value>
Value required(std::optional<Value> value) {
  if (!value) throw damaged();
  return *std::move(value);
}

// Ends with the activity's versionstamp, if there is one, so that the store can fill it in.
void encode_header(Packer& packer, const Job& job) {
  // decode_job() rejects other values.
  DIVAN_CHECK(job.attempt >= 0 && job.failures >= 0 && job.lost >= 0,
              "attempt {} of a job, {} failures and {} lost", job.attempt, job.failures, job.lost);
  DIVAN_CHECK(job.data_chunks >= 0 && job.data_chunks <= kMaxChunks, "a job's data in {} chunks",
              job.data_chunks);
  DIVAN_CHECK(job.next_chunks >= kSameData && job.next_chunks <= kMaxChunks, "a job's next data in {} chunks",
              job.next_chunks);
  DIVAN_CHECK(job.result_chunks >= 0 && job.result_chunks <= kMaxChunks, "a job's result in {} chunks",
              job.result_chunks);
  DIVAN_CHECK((job.data.empty() || job.data_chunks == 0) && (job.next_data.empty() || job.next_chunks == 0),
              "a job's data in its header and in rows");
  DIVAN_CHECK(job.history >= 0 && job.history <= kMaxHistory, "a job has a history of {} attempts",
              job.history);
  packer.integer(is_in_batch(job) ? kLayoutInBatch : kHeaderLayout)
      .integer(static_cast<int>(job.state))
      .integer(job.priority)
      .integer(job.scheduled_at)
      .integer(job.due_at)
      .integer(job.attempt)
      .integer(job.failures)
      .string(job.lock)
      .integer(job.epoch)
      .boolean(job.resubmit)
      .integer(job.resubmit_at)
      .boolean(job.cancel)
      .string(job.worker_role)
      .string(job.worker_id)
      .integer(job.added_at)
      .integer(job.started_at)
      .integer(job.finished_at)
      .string(job.progress)
      .string(job.last_error)
      .string(job.schedule)
      .integer(job.data_chunks)
      .integer(job.next_chunks)
      .boolean(job.swapped)
      .integer(job.lost)
      .string(job.limits)
      .integer(job.deadline)
      .integer(job.result_chunks)
      .integer(job.history)
      .string(job.data)
      .string(job.next_data);
  if (is_in_batch(job)) packer.integer(job.batch);
  if (job.activity) packer.versionstamp(*job.activity);
}

std::int64_t take_between(Reader& reader, std::int64_t least, std::int64_t most) {
  const auto number = required(reader.take_int());
  if (number < least || number > most) throw damaged();
  return number;
}

// Reads a counter that may still be incremented.
std::int64_t take_count(Reader& reader) { return take_between(reader, 0, INT64_MAX - 1); }

// Validated here, since accepting a job and ending an attempt parse them.
std::string take_limits(Reader& reader) {
  auto limits = required(reader.take_string());
  if (limits.empty()) return limits;
  try {
    with_limits({}, limits);
    return limits;
  } catch (const Error&) { throw damaged(); }
}

// Data in the header; those in rows are not there.
std::string take_data(Reader& reader, std::int64_t chunks) {
  auto data = required(reader.take_string());
  if (!data.empty() && chunks != 0) throw damaged();
  return data;
}

Packer activity_packer(std::string& key, const Job& job) {
  DIVAN_CHECK(job.activity, "the entry of a job without a report");
  key = JobKey("act").string(job.type).integer(kShard).key();
  Packer packer(key);
  packer.versionstamp(*job.activity).string(job.id);
  return packer;
}

}  // namespace

Job decode_job(std::string_view type, std::string_view id, std::string_view value) {
  Reader reader(value);
  Job job;
  job.type = type;
  job.id = id;
  const auto layout = required(reader.take_int());
  if (layout < kOldHeaderLayout) throw damaged();
  if (layout > kLayoutInBatch) throw newer_layout(layout);
  const auto state = required(reader.take_int());
  if (state < 0 || state >= static_cast<std::int64_t>(std::size(kStates))) throw damaged();
  job.state = static_cast<State>(state);
  job.priority = required(reader.take_int());
  job.scheduled_at = required(reader.take_int());
  job.due_at = required(reader.take_int());
  job.attempt = take_count(reader);
  job.failures = take_count(reader);
  job.lock = required(reader.take_string());
  job.epoch = required(reader.take_int());
  job.resubmit = required(reader.take_bool());
  job.resubmit_at = required(reader.take_int());
  job.cancel = required(reader.take_bool());
  job.worker_role = required(reader.take_string());
  job.worker_id = required(reader.take_string());
  job.added_at = required(reader.take_int());
  job.started_at = required(reader.take_int());
  job.finished_at = required(reader.take_int());
  job.progress = required(reader.take_string());
  job.last_error = required(reader.take_string());
  job.schedule = required(reader.take_string());
  job.data_chunks = take_between(reader, 0, kMaxChunks);
  job.next_chunks = take_between(reader, kSameData, kMaxChunks);
  job.swapped = required(reader.take_bool());
  if (layout > kOldHeaderLayout) {
    job.lost = take_count(reader);
    job.limits = take_limits(reader);
    job.deadline = required(reader.take_int());
    job.result_chunks = take_between(reader, 0, kMaxChunks);
  } else {
    job.old_entry = job.state != State::pending && job.state != State::running;
  }
  job.history = take_between(reader, 0, kMaxHistory);
  if (layout >= kFirstLayoutWithData) {
    job.data = take_data(reader, job.data_chunks);
    job.next_data = take_data(reader, job.next_chunks);
  }
  if (layout == kLayoutInBatch) {
    job.batch = take_between(reader, 1, INT64_MAX);
    if (job.state != State::running || !has_worker(job)) throw damaged();
  }
  if (!reader.at_end()) job.activity = required(reader.take_versionstamp());
  if (!reader.at_end()) throw damaged();
  return job;
}

bool job_exists(kv::Transaction& tx, std::string_view type, std::string_view id) {
  return tx.get(header_key(type, id), kv::Isolation::snapshot).has_value();
}

bool is_of_newer_layout(std::string_view header) {
  return Reader(header).take_int().value_or(kHeaderLayout) > kLayoutInBatch;
}

JobKey history_key(const Job& job) { return JobKey("hist").string(job.type).string(job.id); }

JobKey data_key(const Job& job, DataSlot slot) {
  const bool first = (slot == DataSlot::current) != job.swapped;
  return JobKey(first ? "data" : "next").string(job.type).string(job.id);
}

std::string chunk_key(const Job& job, DataSlot slot, std::int64_t chunk) {
  return data_key(job, slot).integer(chunk).key();
}

std::string entry_key(const Job& job) {
  if (job.state == State::pending) return pending_key(job);
  if (job.state != State::running) return ended_key(job);
  if (job.batch != 0) return batch_count_key(job.worker_role, job.worker_id, job.batch);
  if (has_worker(job)) return worker_key(job);
  std::string key = JobKey("act").string(job.type).integer(kShard).key();
  if (job.activity) activity_packer(key, job);
  return key;
}

JobKey batches_key(std::string_view role, std::string_view worker) {
  return JobKey("batch").string(role).string(worker);
}

std::string batch_count_key(std::string_view role, std::string_view worker, std::int64_t batch) {
  return batches_key(role, worker).integer(batch).string(kBatchCount).key();
}

void remove_entry(kv::Transaction& tx, std::string_view key, bool in_batch) {
  in_batch ? tx.add(key, -1) : tx.clear(key);
}

std::string deadline_key(const Job& job) {
  if (job.state != State::running || job.deadline == 0) return {};
  return JobKey("deadline").string(job.type).integer(kShard).integer(job.deadline).string(job.id).key();
}

std::string activity_value(const Job& job) {
  if (job.limits.empty()) return {};
  const auto timeout = json::int_value(json::member(job.limits, "timeout").value_or(""));
  std::string value;
  if (timeout) Packer(value).integer(*timeout);
  return value;
}

std::optional<Duration> decode_activity_value(std::string_view value) {
  if (value.empty()) return std::nullopt;
  Reader reader(value);
  const auto ms = required(reader.take_int());
  if (!reader.at_end() || ms < 0 || ms > kMaxTimeoutMs) throw damaged();
  return std::chrono::milliseconds(ms);
}

std::optional<Job> read_job(kv::Transaction& tx, std::string_view type, std::string_view id,
                            kv::Isolation isolation) {
  const auto row = tx.get(header_key(type, id), isolation);
  if (!row) return std::nullopt;
  return decode_job(type, id, *row);
}

void prefetch_header(kv::Prefetch& reads, std::string_view type, std::string_view id) {
  reads.key(header_key(type, id));
}

void prefetch_job(kv::Prefetch& reads, std::string_view type, std::string_view id) {
  prefetch_header(reads, type, id);
  Job job;
  job.type = type;
  job.id = id;
  reads.key(chunk_key(job, DataSlot::current, 0));
}

std::optional<Job> read_pending_job(kv::Transaction& tx, std::string_view type, std::string_view id,
                                    std::string_view copy) {
  if (copy.empty()) return read_job(tx, type, id);
  std::string key = header_key(type, id);
  std::string after = key + '\0';
  tx.add_read_conflict({std::move(key), std::move(after)});
  return decode_job(type, id, copy);
}

void prefetch_pending_job(kv::Prefetch& reads, std::string_view type, std::string_view id,
                          std::string_view copy) {
  if (copy.empty()) return prefetch_job(reads, type, id);
  try {
    const Job job = decode_job(type, id, copy);
    if (job.data_chunks > 0) reads.key(chunk_key(job, DataSlot::current, 0));
  } catch (const Error&) {}  // read_pending_job() throws it again
}

namespace {

// Writes the header, and the copy of it in the entry of a pending job.
void write_header(kv::Transaction& tx, const Job& job) {
  std::string header;
  header.reserve(kReservedForHeader);
  Packer packer(header);
  encode_header(packer, job);
  if (job.activity && !job.activity->is_complete()) {
    packer.finish_versionstamped();
    tx.set_versionstamped_value(header_key(job.type, job.id), header);
  } else {
    tx.set(header_key(job.type, job.id), header);
    if (job.state == State::pending) tx.set(pending_key(job), header);
  }
}

void clear_chunks(kv::Transaction& tx, const Job& job, DataSlot slot, std::int64_t begin, std::int64_t end) {
  for (std::int64_t chunk = begin; chunk < end; ++chunk) tx.clear(chunk_key(job, slot, chunk));
}

// Returns true if a job may change from one state to the other.
bool may_become(State before, State after) {
  if (before == after || before == State::running || after == State::pending) return true;
  return before == State::pending && (after == State::running || after == State::cancelled);
}

std::int64_t& chunks_of(Job& job, DataSlot slot) {
  return slot == DataSlot::current ? job.data_chunks : job.next_chunks;
}
std::int64_t chunks_of(const Job& job, DataSlot slot) {
  return slot == DataSlot::current ? job.data_chunks : job.next_chunks;
}
std::string& data_in_header(Job& job, DataSlot slot) {
  return slot == DataSlot::current ? job.data : job.next_data;
}
const std::string& data_in_header(const Job& job, DataSlot slot) {
  return slot == DataSlot::current ? job.data : job.next_data;
}

}  // namespace

void link(kv::Transaction& tx, const Job& job) {
  tx.add(count_key(job.type, job.state), 1);
  relink(tx, job, {.state = job.state});
}

void unlink(kv::Transaction& tx, const Job& job) {
  tx.clear(header_key(job.type, job.id));
  tx.add(count_key(job.type, job.state), -1);
  remove_entry(tx, entry_key(job), is_in_batch(job));
  if (const auto deadline = deadline_key(job); !deadline.empty()) tx.clear(deadline);
  if (job.result_chunks > 0) tx.clear_range(result_key(job).range());
  clear_chunks(tx, job, DataSlot::current, 0, job.data_chunks);
  clear_chunks(tx, job, DataSlot::next, 0, job.next_chunks);
  if (job.history > 0) tx.clear_range(history_key(job).range());
}

void relink(kv::Transaction& tx, const Job& given, const JobEntries& before) {
  DIVAN_CHECK(may_become(before.state, given.state), "a job that was {} becomes {}", state_name(before.state),
              state_name(given.state));
  // Other jobs are not checked, since their rows may be damaged.
  const bool starts = before.state != State::running && given.state == State::running;
  const bool ends = before.state == State::running && given.state != State::running;
  DIVAN_CHECK(!starts || !given.lock.empty(), "an attempt begins without a lock");
  DIVAN_CHECK(!ends || (given.lock.empty() && given.deadline == 0),
              "an attempt has ended, but its lock or deadline remains");
  DIVAN_CHECK(!given.old_entry, "a job is written with the entry of an older format");
  const std::string& entry = before.entry;
  Job job = given;
  const bool alone = job.state == State::running && !has_worker(job);
  // The damaged row of a pending job may have an activity.
  if (!alone || starts) job.activity.reset();
  const auto leave = [&] {
    if (!entry.empty()) remove_entry(tx, entry, before.in_batch);
  };
  if (job.state != before.state) {
    tx.add(count_key(job.type, before.state), -1);
    tx.add(count_key(job.type, job.state), 1);
  }
  if (alone && !job.activity) {
    leave();
    job.activity = kv::Versionstamp::incomplete();
    std::string key;
    activity_packer(key, job).finish_versionstamped();
    tx.set_versionstamped_key(key, activity_value(job));
  } else if (const std::string key = entry_key(job); key != entry) {
    DIVAN_CHECK(!alone, "the entry of a running job changes without a report");
    leave();
    if (job.state == State::pending) {
      tx.add(wake_key(job.type), 1);
    } else if (is_in_batch(job)) {
      tx.add(key, 1);
    } else {
      tx.set(key, {});
    }
  }
  if (const std::string deadline = deadline_key(job); deadline != before.deadline) {
    if (!before.deadline.empty()) tx.clear(before.deadline);
    if (!deadline.empty()) tx.set(deadline, {});
  }
  write_header(tx, job);
}

std::string read_data(kv::Transaction& tx, const Job& job, DataSlot slot) {
  const std::int64_t chunks = chunks_of(job, slot);
  if (chunks == 0) {
    const std::string& data = data_in_header(job, slot);
    return data.empty() ? std::string(kNoData) : data;
  }
  return required(kv::read_chunks(tx, static_cast<std::uint32_t>(chunks),
                                  [&](std::uint32_t chunk) { return chunk_key(job, slot, chunk); }));
}

void check_data(std::string_view json) {
  if (json.size() > kMaxDataBytes)
    throw Error(413, "too_large", fmt::format("A job's data exceed {} bytes.", kMaxDataBytes));
}

void write_data(kv::Transaction& tx, Job& job, std::string_view json, DataSlot slot) {
  check_data(json);
  if (json == kNoData) json = {};
  const bool in_header = json.size() <= kMaxDataInHeader;
  data_in_header(job, slot) = in_header ? json : std::string_view();
  if (in_header) json = {};
  const std::int64_t before = std::exchange(chunks_of(job, slot), kv::chunk_count(json.size()));
  DIVAN_CHECK(chunks_of(job, slot) <= kMaxChunks, "a job's data in {} chunks", chunks_of(job, slot));
  clear_chunks(tx, job, slot, chunks_of(job, slot), before);
  kv::for_each_chunk(
      json, [&](std::uint32_t chunk, std::string_view piece) { tx.set(chunk_key(job, slot, chunk), piece); });
}

JobKey result_key(const Job& job) { return JobKey("result").string(job.type).string(job.id); }

std::optional<std::string> read_result(kv::Transaction& tx, const Job& job) {
  if (job.result_chunks == 0) return std::nullopt;
  return required(kv::read_chunks(tx, static_cast<std::uint32_t>(job.result_chunks),
                                  [&](std::uint32_t chunk) { return result_key(job).integer(chunk).key(); }));
}

void write_result(kv::Transaction& tx, Job& job, std::optional<std::string_view> json) {
  if (json) check_data(*json);
  if (job.result_chunks > 0) tx.clear_range(result_key(job).range());
  job.result_chunks = json ? kv::chunk_count(json->size()) : 0;
  if (!json) return;
  kv::for_each_chunk(*json, [&](std::uint32_t chunk, std::string_view piece) {
    tx.set(result_key(job).integer(chunk).key(), piece);
  });
}

void write_next_data(kv::Transaction& tx, Job& job, std::optional<std::string_view> json) {
  if (json) return write_data(tx, job, *json, DataSlot::next);
  clear_chunks(tx, job, DataSlot::next, 0, std::exchange(job.next_chunks, kSameData));
  job.next_data.clear();
}

std::int64_t take_next_run(kv::Transaction& tx, Job& job) {
  DIVAN_CHECK(job.resubmit, "a job that was not resubmitted runs again");
  const std::int64_t at = std::exchange(job.resubmit_at, 0);
  job.resubmit = false;
  const std::int64_t chunks = std::exchange(job.next_chunks, 0);
  if (chunks == kSameData) return at;
  clear_chunks(tx, job, DataSlot::current, 0, std::exchange(job.data_chunks, chunks));
  job.data = std::exchange(job.next_data, {});
  job.swapped = !job.swapped;
  return at;
}

void drop_next_run(kv::Transaction& tx, Job& job) {
  clear_chunks(tx, job, DataSlot::next, 0, std::exchange(job.next_chunks, 0));
  job.next_data.clear();
  job.resubmit = false;
  job.resubmit_at = 0;
}

std::string types_key() { return JobKey("types").key(); }

std::vector<std::string> types_with(kv::Transaction& tx, std::string_view kind) {
  std::vector<std::string> types;
  const JobKey prefix(kind);
  kv::KeyRange range = prefix.range();
  for (;;) {
    const auto first = tx.get_range(range, {.limit = 1, .isolation = kv::Isolation::snapshot}).rows;
    if (first.empty()) return types;
    auto type = Reader(std::string_view(first[0].key).substr(prefix.key().size())).take_string();
    range.begin = type ? JobKey(kind).string(*type).range().end : first[0].key + '\0';
    if (type) types.push_back(*std::move(type));
  }
}

std::string type_key(std::string_view type) { return JobKey("type").string(type).key(); }

kv::KeyRange max_running_range(std::string_view type) { return JobKey("turn").string(type).range(); }

std::string wake_key(std::string_view type) { return JobKey("wake").string(type).integer(kShard).key(); }

std::string count_key(std::string_view type, State state) {
  return JobKey("cnt").string(type).integer(static_cast<int>(state)).integer(kShard).key();
}

}  // namespace divan::jobs
