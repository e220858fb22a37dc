#include "sim/job_rows.h"

#include "divan/jobs/rows.h"
#include "sim/steps.h"

namespace divan::sim {

using jobs::Job;
using jobs::JobKey;
using jobs::State;
using kv::tuple::Packer;
using kv::tuple::Reader;

std::string entry_of(const Job& job) {
  std::string key;
  Packer packer(key);
  packer.string("jobs");
  if (job.state == State::pending) {
    packer.string("pend")
        .string(job.type)
        .integer(0)
        .integer(job.priority)
        .integer(job.due_at)
        .string(job.id);
  } else if (job.state == State::running && job.worker_id.empty()) {
    packer.string("act").string(job.type).integer(0).versionstamp(job.activity.value()).string(job.id);
  } else if (job.state == State::running && job.batch == 0) {
    packer.string("by_worker").string(job.worker_role).string(job.worker_id).string(job.type).string(job.id);
  } else if (job.state != State::running) {
    packer.string("end")
        .string(job.type)
        .integer(static_cast<int>(job.state))
        .integer(job.finished_at)
        .string(job.id);
  }
  return key;
}

std::string deadline_entry_of(const Job& job) {
  std::string key;
  Packer(key)
      .string("jobs")
      .string("deadline")
      .string(job.type)
      .integer(0)
      .integer(job.deadline)
      .string(job.id);
  return key;
}

std::optional<JobRow> parse_job_row(std::string_view key) {
  Reader reader(key);
  if (reader.take_string() != "jobs") return std::nullopt;
  JobRow entry;
  entry.kind = reader.take_string().value();
  const bool by_worker = entry.kind == "by_worker";
  if (by_worker) reader.take_string(), reader.take_string();
  entry.job.first = reader.take_string().value_or("");
  if (entry.kind == "pend") reader.take_int(), reader.take_int(), reader.take_int();
  if (entry.kind == "act") reader.take_int(), reader.take_versionstamp();
  if (entry.kind == "end" || entry.kind == "deadline") reader.take_int(), reader.take_int();
  entry.job.second = reader.take_string().value_or("");
  return entry;
}

std::optional<std::string> data_under(const Rows& rows, std::string_view kind, const JobName& name) {
  const std::string prefix = JobKey(kind).string(name.first).string(name.second).key();
  std::optional<std::string> data;
  for (auto row = rows.lower_bound(prefix); row != rows.end() && row->first.starts_with(prefix); ++row) {
    if (!data) data.emplace();
    *data += row->second;
  }
  if (data) data = fingerprint(*data);
  return data;
}

std::optional<Job> find_job(const Rows& rows, const JobName& name) {
  const auto row = rows.find(JobKey("job").string(name.first).string(name.second).key());
  if (row == rows.end()) return std::nullopt;
  return jobs::decode_job(name.first, name.second, row->second);
}

}  // namespace divan::sim
