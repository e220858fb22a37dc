#include "divan/jobs/worker_jobs.h"

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

struct Name {
  std::string role;
  std::string id;
};

JobKey left_key(const Name& worker) { return JobKey("left").string(worker.role).string(worker.id); }

struct Batch {
  kv::KeyRange rest;  // entries not read yet
  bool done = false;
};

// Reclaims the job of an entry of a worker, unless it was accepted at `ended_at` or later.
void reclaim_by_entry(QueueCore& queue, kv::Transaction& tx, const JobKey& prefix, std::string_view key,
                      kv::Version ended_at) {
  kv::tuple::Reader reader(key.substr(prefix.key().size()));
  const auto type = reader.take_string();
  const auto id = reader.take_string();
  if (!type || !id) return queue.report_damage(key, kDamagedRunningEntry);
  auto job = queue.find_or_report(tx, *type, *id);
  if (job && job->state == State::running && job->epoch < ended_at) reclaim(queue, tx, *job, Outcome::lost);
}

// Reclaims the first jobs of `range`, which contains entries of a worker, except those accepted at `ended_at`
// or later.
Batch reclaim_some(QueueCore& queue, kv::Transaction& tx, const JobKey& prefix, kv::KeyRange range,
                   kv::Version ended_at, kv::Isolation isolation) {
  const std::size_t limit = queue.reclaimed_at_once();
  std::vector<std::string> keys;
  tx.scan(range, {.limit = limit + 1, .isolation = isolation}, [&](std::string_view key, std::string_view) {
    keys.emplace_back(key);
    return true;
  });
  DIVAN_CHECK(keys.size() <= limit + 1, "{} entries were read of {}", keys.size(), limit + 1);
  Batch batch{std::move(range), keys.size() <= limit};
  if (!batch.done) keys.pop_back();
  for (const auto& key : keys) {
    if (tx.approximate_size() > kFullTransaction) {
      batch.done = false;
      break;
    }
    reclaim_by_entry(queue, tx, prefix, key, ended_at);
    DIVAN_CHECK(key >= batch.rest.begin, "the entries of a worker are read backwards");
    batch.rest.begin = key + '\0';
  }
  return batch;
}

JobKey worker_entries(const Name& worker) {
  return JobKey("by_worker").string(worker.role).string(worker.id);
}

void reclaim_left_by(QueueCore& queue, kv::Database& store, const Name& worker, const std::string& note) {
  const auto ended = kv::tuple::Reader(note).take_versionstamp();
  if (!ended) throw internal_error("A row of an ended worker in the store is damaged.");
  const auto ended_at = static_cast<kv::Version>(read_u64(ended->bytes()));
  const JobKey prefix = worker_entries(worker);
  kv::KeyRange rest = prefix.range();
  for (bool done = false; !done;) {
    const Batch batch = store.run([&](kv::Transaction& tx) {
      auto some = reclaim_some(queue, tx, prefix, rest, ended_at, kv::Isolation::snapshot);
      // Another registration may have ended meanwhile and left jobs that were skipped here.
      if (const std::string key = left_key(worker).key(); some.done && tx.get(key) == note) tx.clear(key);
      return some;
    });
    rest = batch.rest;
    done = batch.done;
  }
}

}  // namespace

void worker_ended(QueueCore& queue, kv::Transaction& tx, std::string_view role, std::string_view id) {
  clear_halts(tx, role, id);
  const Name worker{std::string(role), std::string(id)};
  const JobKey prefix = worker_entries(worker);
  // Serializable, so that a concurrent accept of the worker conflicts.
  const Batch batch = reclaim_some(queue, tx, prefix, prefix.range(), INT64_MAX, kv::Isolation::serializable);
  if (batch.done) return;
  std::string version;
  kv::tuple::Packer(version).versionstamp(kv::Versionstamp::incomplete()).finish_versionstamped();
  tx.set_versionstamped_value(left_key(worker).key(), version);
  // Wakes the maintenance of every process, which watches this key.
  tx.add(types_key(), 1);
}

std::vector<Job> jobs_of_worker(QueueCore& queue, kv::Transaction& tx, std::string_view role,
                                std::string_view id, std::string_view type, std::string_view start_id,
                                std::size_t limit) {
  std::vector<Job> jobs;
  const JobKey prefix = worker_entries({std::string(role), std::string(id)}).string(type);
  kv::KeyRange range = prefix.range();
  if (!start_id.empty()) range.begin = JobKey(prefix).string(start_id).key();
  const kv::RangeOptions options{.limit = limit, .isolation = kv::Isolation::snapshot};
  tx.scan(range, options, [&](std::string_view key, std::string_view) {
    if (const auto job_id = kv::tuple::Reader(key.substr(prefix.key().size())).take_string()) {
      auto job = queue.find_or_report(tx, type, *job_id, kv::Isolation::snapshot);
      if (job) jobs.push_back(*std::move(job));
    } else {
      queue.report_damage(key, kDamagedRunningEntry);
    }
    return true;
  });
  return jobs;
}

void for_each_worker_job(kv::Transaction& tx, std::string_view type,
                         const std::function<void(std::string_view, std::optional<std::string>)>& visit) {
  constexpr kv::RangeOptions kSnapshot{.isolation = kv::Isolation::snapshot};
  const JobKey all("by_worker");
  kv::KeyRange rest = all.range();
  // Seeks from worker to worker, since these may have jobs of many types.
  for (;;) {
    const auto first = tx.get_range(rest, {.limit = 1, .isolation = kv::Isolation::snapshot}).rows;
    if (first.empty()) return;
    kv::tuple::Reader reader(std::string_view(first[0].key).substr(all.key().size()));
    const auto role = reader.take_string();
    const auto id = role ? reader.take_string() : std::nullopt;
    if (!id) {
      visit(first[0].key, std::nullopt);
      rest.begin = first[0].key + '\0';
      continue;
    }
    const JobKey of_type = worker_entries({*role, *id}).string(type);
    tx.scan(of_type.range(), kSnapshot, [&](std::string_view key, std::string_view) {
      visit(key, kv::tuple::Reader(key.substr(of_type.key().size())).take_string());
      return true;
    });
    rest.begin = worker_entries({*role, *id}).range().end;
  }
}

void reclaim_left(QueueCore& queue, kv::Database& store) {
  const JobKey prefix("left");
  std::vector<std::pair<Name, std::string>> left;
  store.run([&](kv::Transaction& tx) {
    left.clear();
    tx.scan(prefix.range(), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view note) {
              kv::tuple::Reader reader(key.substr(prefix.key().size()));
              auto role = reader.take_string();
              auto id = reader.take_string();
              if (role && id) {
                left.push_back({{*std::move(role), *std::move(id)}, std::string(note)});
              } else {
                queue.report_damage(key, "A row of an ended worker is damaged and skipped.");
              }
              return true;
            });
  });
  for (const auto& [worker, note] : left) {
    try {
      reclaim_left_by(queue, store, worker, note);
    } catch (const std::exception& error) {
      log::error("Cannot reclaim jobs of worker {}/{}, which has ended: {}", worker.role, worker.id,
                 error.what());
    }
  }
}

}  // namespace divan::jobs
