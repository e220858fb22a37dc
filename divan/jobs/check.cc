#include "divan/jobs/check.h"

#include <fmt/core.h>

#include "divan/base/json.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/history.h"
#include "divan/jobs/periodic.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/schedule.h"

namespace divan::jobs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr std::size_t kMaxNamed = 20;

Error wrong(std::string_view what) { return internal_error(std::string(what)); }

const std::string& prefix() {
  static const std::string packed = [] {
    std::string key;
    Packer(key).string("jobs");
    return key;
  }();
  return packed;
}

// The kinds of rows without a value, at most one per job, and the types of the elements after the kind.
const std::map<std::string, std::string_view>& entry_shapes() {
  static const std::map<std::string, std::string_view> shapes = {{"pend", "siiis"},     {"act", "sivs"},
                                                                 {"by_worker", "ssss"}, {"fin", "sis"},
                                                                 {"end", "siis"},       {"deadline", "siis"}};
  return shapes;
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  if (!key.starts_with(prefix())) {
    end_data();
    return false;
  }
  try {
    check_row(key, value);
  } catch (const Error& error) { findings_.add(error.reason(), key); }
  return true;
}

void Check::check_row(std::string_view key, std::string_view value) {
  Reader reader(key.substr(prefix().size()));
  const std::string kind = reader.take_string().value_or("");
  const std::string_view rest = reader.rest();
  const auto expect = [&](bool right) {
    if (!right) throw wrong("unknown row of the job queue");
  };
  const auto entry = entry_shapes().find(kind);
  if (entry != entry_shapes().end()) {
    expect(kv::has_shape(rest, entry->second));
    // The entry of a running job without a registered worker may have a timeout as its value, that of a
    // pending job has a copy of the header.
    if (kind == "act") {
      decode_activity_value(value);
    } else if (kind == "pend") {
      pending_row(key, value);
    } else {
      expect(value.empty());
    }
    entries_.add(key);
  } else if (kind == "job") {
    header_row(rest, value);
  } else if (kind == "cnt") {
    count_row(rest, value);
  } else if (kind == "type") {
    expect(kv::has_shape(rest, "s"));
    const std::string type = *Reader(rest).take_string();
    types_.insert(type);
    if (!stored_settings(value).schedule.empty()) periodic_wanted_.insert(type);
  } else if (kind == "hist") {
    expect(kv::has_shape(rest, "ssi"));
    Reader parts(rest);
    ++histories_[*parts.take_string()];
    parts.take_string();
    const auto epoch = *parts.take_int();
    check_epoch(epoch);
    decode_attempt(epoch, value);
  } else if (kind == "left") {
    expect(kv::has_shape(rest, "ss") && kv::has_shape(value, "v"));
    if (kv::is_beyond(*Reader(value).take_versionstamp(), version_))
      throw wrong(fmt::format("its versionstamp is greater than the store's version {}", version_));
  } else if (kind == "batch") {
    // Its jobs are checked with their headers.
    if (kv::has_shape(rest, "ssi")) {
      if (!decode_batch(value)) throw wrong("malformed names of jobs");
    } else {
      expect(kv::has_shape(rest, "ssis") && parse_batch_key(key) && value.size() == 8);
    }
  } else if (kind == "halt") {
    Reader worker(rest);
    expect(worker.take_string() && worker.take_string());
    if (worker.at_end()) {
      expect(value.size() == 8);
    } else {
      decode_halt(worker.rest(), value);
    }
  } else if (kind == "types") {
    expect(rest.empty() && value.size() == 8);
  } else if (kind == "wake") {
    expect(kv::has_shape(rest, "si") && value.size() == 8);
  } else {
    expect((kind == "data" || kind == "next" || kind == "result") && kv::has_shape(rest, "ssi"));
    data_row(key, rest, value);
  }
}

void Check::header_row(std::string_view rest, std::string_view value) {
  if (!kv::has_shape(rest, "ss")) throw wrong("expected a type and an id");
  Reader reader(rest);
  const auto type = reader.take_string();
  const auto id = reader.take_string();
  const Job job = decode_job(*type, *id, value);
  types_wanted_.insert(job.type);
  if (job.history > 0) histories_wanted_[job.type] += job.history;
  if (job.id == kPeriodicId) periodic_.insert(job.type);
  // The key after that of the last chunk stands for the number of chunks.
  if (job.data_chunks > 0) data_wanted_.add(chunk_key(job, DataSlot::current, job.data_chunks));
  if (job.next_chunks > 0) data_wanted_.add(chunk_key(job, DataSlot::next, job.next_chunks));
  if (job.result_chunks > 0) data_wanted_.add(result_key(job).integer(job.result_chunks).key());
  if (!job.limits.empty() && job_limits(job.limits) != job.limits)
    throw wrong("the job's own settings are not in canonical form");
  if (const auto deadline = deadline_key(job); !deadline.empty()) entries_wanted_.add(deadline);
  for (const std::string* data : {&job.data, &job.next_data}) {
    if (!data->empty() && !json::is_compact(*data)) throw wrong("the data in the header are not JSON");
  }
  if (job.state == State::pending) copies_wanted_.add(entry_key(job) + std::string(value));
  ++counted_[{job.type, static_cast<std::int64_t>(job.state)}];
  if (is_in_batch(job)) {
    batches_[entry_key(job)].emplace_back(job.type, job.id);
  } else {
    entries_wanted_.add(entry_key(job));
  }
  check_epoch(job.epoch);
  if (job.activity && kv::is_beyond(*job.activity, version_))
    throw wrong(fmt::format("its versionstamp is greater than the store's version {}", version_));
  if (is_periodic(job) && Schedule::of_json(job.schedule).json() != job.schedule)
    throw wrong("its schedule is not in canonical form");
}

void Check::pending_row(std::string_view key, std::string_view value) {
  // Older versions wrote no copy.
  if (value.empty()) {
    all_have_copies_ = false;
  } else {
    copies_.add(std::string(key) + std::string(value));
  }
}

// Epochs are versions at which jobs were accepted. With a later one, a stale worker would pass as a newer
// one.
void Check::check_epoch(std::int64_t epoch) const {
  if (epoch > version_)
    throw wrong(fmt::format("the epoch {} is greater than the store's version {}", epoch, version_));
}

void Check::count_row(std::string_view rest, std::string_view value) {
  if (!kv::has_shape(rest, "sii") || value.size() != 8) throw wrong("malformed counter");
  Reader reader(rest);
  const auto type = reader.take_string();
  const auto state = reader.take_int();
  // The sum of all shards.
  auto& sum = counters_[{*type, *state}];
  if (__builtin_add_overflow(sum, kv::decode_counter(value), &sum)) throw wrong("malformed counter");
}

void Check::data_row(std::string_view key, std::string_view rest, std::string_view value) {
  Reader reader(rest);
  reader.take_string();
  reader.take_string();
  const std::string_view place = key.substr(0, key.size() - reader.rest().size());
  if (value_ && value_->id() != place) end_data();
  if (!value_) value_.emplace(std::string(place));
  if (!value_->add(*reader.take_int(), value))
    throw wrong("the chunk before this one is missing or incomplete");
}

void Check::end_data() {
  if (!value_) return;
  std::string end = value_->id();
  Packer(end).integer(value_->chunks());
  data_.add(end);
  const auto text = value_->text();
  if (text && !json::is_compact(*text)) findings_.add("the data of a job is not JSON", value_->id());
  value_.reset();
}

void Check::finish(kv::RowSource& rows) {
  end_data();
  for (const auto& type : types_wanted_) {
    if (!types_.contains(type))
      findings_.add(fmt::format("There are jobs of type {}, which is not declared.", type));
  }
  if (histories_ != histories_wanted_)
    findings_.add("The number of rows of former attempts differs from the jobs' headers.");
  if (periodic_ != periodic_wanted_)
    findings_.add("The periodic job of a type with a schedule is missing or has no schedule.");
  for (const auto& [key, count] : counted_) counters_.try_emplace(key, 0);
  for (const auto& [key, counter] : counters_) {
    const auto it = counted_.find(key);
    const std::int64_t counted = it == counted_.end() ? 0 : it->second;
    if (counter != counted)
      findings_.add(fmt::format("Jobs of type {}: the counter of state {} is {}, but there are {}.",
                                key.first, key.second, counter, counted));
  }
  check_batches(rows);
  const bool copies_differ = all_have_copies_ && copies_ != copies_wanted_;
  if (entries_ != entries_wanted_ || data_ != data_wanted_ || copies_differ) explain(rows);
}

// A batch whose counter is too low is overwritten while it is needed. One that is too high (the header of one
// of its jobs was damaged and removed) is not used again until the worker ends, which does no harm.
void Check::check_batches(kv::RowSource& rows) {
  for (const auto& [key, running] : batches_) {
    const auto batch = parse_batch_key(key);
    const std::int64_t count = kv::decode_counter(rows.get(key));
    if (count < std::ssize(running))
      findings_.add(
          fmt::format("Worker {}/{}: the counter of batch {} is {}, but {} of its jobs are running.",
                      batch->role, batch->worker, batch->number, count, running.size()));
    const auto names = decode_batch(rows.get(batch->names_key()).value_or(""));
    if (!names) continue;  // reported before
    const std::set<JobNames::value_type> jobs(names->begin(), names->end());
    for (const auto& job : running) {
      if (!jobs.contains(job))
        findings_.add(
            fmt::format("Job {} of type {} is running and has no entry for that state, so it is not "
                        "found.",
                        job.second, job.first));
    }
  }
}

// Reads all rows again, to name jobs without their entry or data, and entries and data without their job.
void Check::explain(kv::RowSource& rows) {
  std::size_t named = 0;
  std::uint64_t entries = 0, data = 0;
  const JobKey headers("job");
  const auto look_for = [&](const Job& job, const std::string& key, std::uint64_t& owned,
                            std::string_view what) {
    if (rows.get(key)) {
      ++owned;
    } else {
      findings_.add(
          fmt::format("Job {} of type {} is {} and {}.", job.id, job.type, state_name(job.state), what));
      ++named;
    }
  };
  rows.scan(headers.range(), [&](std::string_view key, std::string_view value) {
    Reader reader(key.substr(headers.key().size()));
    const auto type = reader.take_string();
    const auto id = reader.take_string();
    try {
      if (!type || !id) return true;
      const Job job = decode_job(*type, *id, value);
      if (!is_in_batch(job))
        look_for(job, entry_key(job), entries, "has no entry for that state, so it is not found");
      if (const auto copy = job.state == State::pending ? rows.get(entry_key(job)) : std::nullopt;
          copy && !copy->empty() && *copy != value) {
        findings_.add(
            fmt::format("Job {} of type {} is pending, and the copy of its header in its entry differs.",
                        job.id, job.type));
        ++named;
      }
      if (const auto deadline = deadline_key(job); !deadline.empty())
        look_for(job, deadline, entries, "has no entry for its deadline");
      const auto look_for_data = [&](DataSlot slot, std::int64_t chunks, std::string_view what) {
        if (chunks > 0) look_for(job, chunk_key(job, slot, chunks - 1), data, what);
      };
      look_for_data(DataSlot::current, job.data_chunks, "lacks some of its data");
      look_for_data(DataSlot::next, job.next_chunks, "lacks some of the data for its next run");
      if (job.result_chunks > 0)
        look_for(job, result_key(job).integer(job.result_chunks - 1).key(), data, "lacks some of its result");
    } catch (const Error&) {}  // a damaged row was reported before
    return named < kMaxNamed;
  });
  if (named >= kMaxNamed) return;
  if (entries_.count() > entries)
    findings_.add(fmt::format("{} entries of the job queue belong to no job.", entries_.count() - entries));
  if (data_.count() > data)
    findings_.add(fmt::format("{} data of the job queue belong to no job.", data_.count() - data));
}

}  // namespace divan::jobs
