#include "divan/jobs/worker_jobs.h"

#include <set>
#include <span>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/worker_batch.h"

namespace divan::jobs {
namespace {

struct Name {
  std::string role;
  std::string id;
};

JobKey left_key(const Name& worker) { return JobKey("left").string(worker.role).string(worker.id); }

struct Progress {
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

// Prefetches the headers of a batch's jobs, of a type or (nullopt) of all.
void prefetch_headers(kv::Transaction& tx, const StoredBatch& batch, std::optional<std::string_view> type) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  for (const auto& [job_type, id] : batch.jobs) {
    if (!type || job_type == *type) prefetch_header(reads, job_type, id);
  }
  tx.prefetch(reads);
}

// Reclaims up to `limit` jobs in the batches of a worker, except those accepted at `ended_at` or later, and
// removes batches without other jobs. Returns true if none are left to be reclaimed.
bool reclaim_batches(QueueCore& queue, kv::Transaction& tx, const Name& worker, std::size_t limit,
                     kv::Version ended_at, kv::Isolation isolation) {
  std::vector<StoredBatch> batches;
  visit_batches(queue, tx, batches_key(worker.role, worker.id).range(), isolation,
                [&](StoredBatch batch) { batches.push_back(std::move(batch)); });
  for (const auto& batch : batches) {
    prefetch_headers(tx, batch, std::nullopt);
    bool is_used = false;
    for (const auto& [type, id] : batch.jobs) {
      // A snapshot: changes of jobs that have left the batch do not conflict.
      auto job = queue.find_or_report(tx, type, id, kv::Isolation::snapshot);
      if (!job) is_used |= job_exists(tx, type, id);  // it is damaged, and may be in the batch
      if (!job || !batch.has(*job)) continue;
      if (job->epoch >= ended_at) {
        is_used = true;
        continue;
      }
      if (limit == 0 || tx.approximate_size() > kFullTransaction) return false;
      job = read_job(tx, type, id);
      reclaim(queue, tx, *job, Outcome::lost);
      --limit;
    }
    if (!is_used) remove_batch(tx, batch);
  }
  return true;
}

JobKey worker_entries(const Name& worker) {
  return JobKey("by_worker").string(worker.role).string(worker.id);
}

// Reclaims the first jobs of a worker whose entries are in `range`, and those in its batches, except those
// accepted at `ended_at` or later.
Progress reclaim_some(QueueCore& queue, kv::Transaction& tx, const Name& worker, kv::KeyRange range,
                      kv::Version ended_at, kv::Isolation isolation) {
  const JobKey prefix = worker_entries(worker);
  const std::size_t limit = queue.reclaimed_at_once();
  std::vector<std::string> keys;
  tx.scan(range, {.limit = limit + 1, .isolation = isolation}, [&](std::string_view key, std::string_view) {
    keys.emplace_back(key);
    return true;
  });
  DIVAN_CHECK(keys.size() <= limit + 1, "{} entries were read of {}", keys.size(), limit + 1);
  Progress progress{std::move(range), keys.size() <= limit};
  if (!progress.done) keys.pop_back();
  for (const auto& key : keys) {
    if (tx.approximate_size() > kFullTransaction) {
      progress.done = false;
      break;
    }
    reclaim_by_entry(queue, tx, prefix, key, ended_at);
    DIVAN_CHECK(key >= progress.rest.begin, "the entries of a worker are read backwards");
    progress.rest.begin = key + '\0';
  }
  if (progress.done)
    progress.done = reclaim_batches(queue, tx, worker, limit - keys.size(), ended_at, isolation);
  return progress;
}

void reclaim_left_by(QueueCore& queue, kv::Database& store, const Name& worker, const std::string& note) {
  const auto ended = kv::tuple::Reader(note).take_versionstamp();
  if (!ended) throw internal_error("A row of an ended worker in the store is damaged.");
  const auto ended_at = static_cast<kv::Version>(read_u64(ended->bytes()));
  kv::KeyRange rest = worker_entries(worker).range();
  for (bool done = false; !done;) {
    const Progress progress = store.run([&](kv::Transaction& tx) {
      auto some = reclaim_some(queue, tx, worker, rest, ended_at, kv::Isolation::snapshot);
      // Another registration may have ended meanwhile and left jobs that were skipped here.
      if (const std::string key = left_key(worker).key(); some.done && tx.get(key) == note) tx.clear(key);
      return some;
    });
    rest = progress.rest;
    done = progress.done;
  }
}

}  // namespace

void worker_ended(QueueCore& queue, kv::Transaction& tx, std::string_view role, std::string_view id) {
  clear_halts(tx, role, id);
  const Name worker{std::string(role), std::string(id)};
  // Serializable, so that a concurrent accept of the worker conflicts.
  const auto progress =
      reclaim_some(queue, tx, worker, worker_entries(worker).range(), INT64_MAX, kv::Isolation::serializable);
  if (progress.done) return;
  std::string version;
  kv::tuple::Packer(version).versionstamp(kv::Versionstamp::incomplete()).finish_versionstamped();
  tx.set_versionstamped_value(left_key(worker).key(), version);
  // Wakes the maintenance of every process, which watches this key.
  tx.add(types_key(), 1);
}

std::vector<Job> jobs_of_worker(QueueCore& queue, kv::Transaction& tx, std::string_view role,
                                std::string_view id, std::string_view type, std::string_view start_id,
                                std::size_t limit) {
  std::set<std::string> ids;  // also of jobs that have left their batch
  const JobKey prefix = worker_entries({std::string(role), std::string(id)}).string(type);
  kv::KeyRange range = prefix.range();
  if (!start_id.empty()) range.begin = JobKey(prefix).string(start_id).key();
  const kv::RangeOptions options{.limit = limit, .isolation = kv::Isolation::snapshot};
  tx.scan(range, options, [&](std::string_view key, std::string_view) {
    if (auto job_id = kv::tuple::Reader(key.substr(prefix.key().size())).take_string()) {
      ids.insert(*std::move(job_id));
    } else {
      queue.report_damage(key, kDamagedRunningEntry);
    }
    return true;
  });
  visit_batches(queue, tx, batches_key(role, id).range(), kv::Isolation::snapshot, [&](StoredBatch batch) {
    for (auto& [job_type, job_id] : batch.jobs) {
      if (job_type == type && job_id >= start_id) ids.insert(std::move(job_id));
    }
  });
  std::vector<Job> jobs;
  std::vector<std::string_view> rest(ids.begin(), ids.end());
  for (std::span<const std::string_view> left(rest); !left.empty() && jobs.size() < limit;) {
    const auto some = left.first(std::min(left.size(), limit - jobs.size()));
    left = left.subspan(some.size());
    QueueCore::prefetch(tx, type, some);
    for (const auto job_id : some) {
      auto job = queue.find_or_report(tx, type, job_id, kv::Isolation::snapshot);
      if (job && job->state == State::running && job->worker_role == role && job->worker_id == id)
        jobs.push_back(*std::move(job));
    }
  }
  return jobs;
}

void for_each_worker_job(QueueCore& queue, kv::Transaction& tx, std::string_view type,
                         const std::function<void(const WorkerJobEntry&, const std::string&)>& visit) {
  constexpr kv::RangeOptions kSnapshot{.isolation = kv::Isolation::snapshot};
  const JobKey all("by_worker");
  kv::KeyRange rest = all.range();
  // Seeks from worker to worker, since these may have jobs of many types.
  for (;;) {
    const auto first = tx.get_range(rest, {.limit = 1, .isolation = kv::Isolation::snapshot}).rows;
    if (first.empty()) break;
    kv::tuple::Reader reader(std::string_view(first[0].key).substr(all.key().size()));
    const auto role = reader.take_string();
    const auto id = role ? reader.take_string() : std::nullopt;
    if (!id) {
      queue.report_damage(first[0].key, kDamagedRunningEntry);
      rest.begin = first[0].key + '\0';
      continue;
    }
    const JobKey of_type = worker_entries({*role, *id}).string(type);
    tx.scan(of_type.range(), kSnapshot, [&](std::string_view key, std::string_view) {
      if (const auto job_id = kv::tuple::Reader(key.substr(of_type.key().size())).take_string()) {
        visit({.key = key}, *job_id);
      } else {
        queue.report_damage(key, kDamagedRunningEntry);
      }
      return true;
    });
    rest.begin = worker_entries({*role, *id}).range().end;
  }
  visit_batches(queue, tx, JobKey("batch").range(), kv::Isolation::snapshot, [&](const StoredBatch& batch) {
    prefetch_headers(tx, batch, type);
    const std::string count = batch.count_key();
    for (const auto& [job_type, id] : batch.jobs) {
      if (job_type != type) continue;
      const auto job = queue.find_or_report(tx, type, id, kv::Isolation::snapshot);
      if (job && batch.has(*job)) visit({.key = count, .in_batch = true}, id);
    }
  });
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
