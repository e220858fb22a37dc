// Rows of jobs and of workers of arbitrary bytes, and the settings of a type of jobs. The first byte selects
// the kind; a row of a job or a worker is decoded, shown, and encoded again unchanged.
#include "divan/base/json.h"
#include "divan/base/rng.h"
#include "divan/jobs/rows.h"
#include "divan/workers/registry.h"
#include "fuzz/stored_rows.h"

namespace {

namespace jobs = divan::jobs;
namespace workers = divan::workers;
using divan::fuzz::answers;
using divan::fuzz::check;
using divan::fuzz::reads;

void check_same(const jobs::Job& a, const jobs::Job& b) {
  check(a.state == b.state && a.priority == b.priority && a.scheduled_at == b.scheduled_at);
  check(a.due_at == b.due_at && a.attempt == b.attempt && a.failures == b.failures && a.lock == b.lock);
  check(a.epoch == b.epoch && a.resubmit == b.resubmit && a.resubmit_at == b.resubmit_at);
  check(a.cancel == b.cancel && a.worker_role == b.worker_role && a.worker_id == b.worker_id);
  check(a.batch == b.batch && a.added_at == b.added_at && a.started_at == b.started_at &&
        a.finished_at == b.finished_at);
  check(a.progress == b.progress && a.last_error == b.last_error);
  check(a.schedule == b.schedule && a.data_chunks == b.data_chunks && a.next_chunks == b.next_chunks);
  check(a.data == b.data && a.next_data == b.next_data);
  check(a.lost == b.lost && a.limits == b.limits && a.deadline == b.deadline);
  check(a.result_chunks == b.result_chunks && a.history == b.history);
}

void read_job(std::string_view value) {
  divan::fuzz::Rows rows;
  rows.set(jobs::JobKey("job").string("t").string("j").key(), value);
  const auto job = jobs::read_job(rows, "t", "j");
  jobs::Job shown = *job;
  // These are returned as they are stored, without a check that they are JSON.
  shown.progress = "{}";
  if (!shown.schedule.empty()) shown.schedule = "{}";
  if (!shown.limits.empty() && !divan::json::is_compact(shown.limits)) shown.limits = "{}";
  const std::string json = jobs::job_json(shown);
  check(divan::json::compact(json) == json);
  // Divan never writes a row with names that are too long for a key.
  if (job->worker_role.size() + job->worker_id.size() > 1000) return;
  jobs::unlink(rows, *job);
  check(!jobs::read_job(rows, "t", "j"));
  jobs::Job present = *job;
  present.old_entry = false;  // it is written in the present layout
  present.activity.reset();   // link() adds the entry of a running job as at its start
  jobs::link(rows, present);
  check_same(*jobs::read_job(rows, "t", "j"), *job);
}

void read_worker(std::string_view worker, std::string_view heartbeat, std::string_view version) {
  const auto key = [](std::string_view kind) {
    std::string packed;
    divan::kv::tuple::Packer(packed).string("workers").string("r").string(kind);
    return packed;
  };
  std::string id;
  divan::kv::tuple::Packer(id).string("w");
  divan::fuzz::Rows rows;
  rows.set(key("w") + id, worker);
  rows.set(key("hb") + id, heartbeat);
  rows.set(key("vs"), version);
  static divan::SystemRng rng;
  workers::Registry registry(rng);
  check(registry.roles(rows) == std::vector<std::string>{"r"});
  check(registry.members(rows, "r").workers.size() == 1);
  const auto ref = registry.find(rows, "r", "w");
  const auto observed = [&] {
    workers::Registry::Roster roster;
    registry.refresh(rows, roster);
    check(roster.roles.at("r")->workers.contains("w"));
    const std::vector<workers::Registry::Name> names{{"r", "w"}};
    return registry.heartbeats(rows, names, roster);
  };
  const auto damaged_or_read = observed();
  check(registry.heartbeat(rows, *ref));
  // A damaged heartbeat is ignored until the next one.
  if (damaged_or_read.empty()) return check(observed().size() == 1);
  const auto& before = damaged_or_read.front();
  const auto after = observed().at(0);
  check(after.ref == *ref);
  check(!registry.evict(rows, before));
  check(registry.evict(rows, after) && !registry.is_alive(rows, *ref));
}

void read_settings(std::string_view text) {
  const jobs::TypeSettings settings = jobs::parse_settings(text);
  check(settings.timeout.count() > 0 && settings.backoff_min <= settings.backoff_max);
  check(settings.retention.count() >= 0 && settings.max_attempts >= 1);
  check(settings.max_running.value_or(1) >= 1);
  const std::string json = jobs::settings_json(settings);
  check(jobs::parse_settings(json) == settings && divan::json::compact(json) == json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const auto text = divan::fuzz::text_of(data + 1, size - 1);
  divan::fuzz::Pieces pieces(text);
  switch (data[0] % 3) {
    case 0: reads([&] { read_job(text); }); break;
    case 1:
      reads([&] {
        const auto worker = pieces.take();
        const auto heartbeat = pieces.take();
        read_worker(worker, heartbeat, pieces.take());
      });
      break;
    default: answers(400, [&] { read_settings(text); });
  }
  return 0;
}
