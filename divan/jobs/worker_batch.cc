#include "divan/jobs/worker_batch.h"

namespace divan::jobs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

// The batches of a worker are numbered from 1 to this. A worker with a batch whose jobs end one after the
// other needs several.
constexpr std::int64_t kBatches = 16;
// The most batches that an accept checks for one that is free.
constexpr int kTries = 3;
// The size of the names at which a batch is full. A value has at most 100,000 bytes, a type and an id 2,000.
constexpr std::size_t kMaxNames = 60'000;

void conflict_on(kv::Transaction& tx, const std::string& key) { tx.add_read_conflict({key, key + '\0'}); }

}  // namespace

std::int64_t WorkerBatch::choose(Rng& rng) { return static_cast<std::int64_t>(rng.below(kBatches)) + 1; }

std::int64_t WorkerBatch::find_free(kv::Transaction& tx, const workers::WorkerRef& worker) const {
  std::int64_t batch = first_;
  for (int i = 0; i < kTries; ++i, batch = batch % kBatches + 1) {
    const std::string key = batch_count_key(worker.role, worker.id, batch);
    if (kv::decode_counter(tx.get(key, kv::Isolation::snapshot)) > 0) continue;
    conflict_on(tx, key);
    return batch;
  }
  return 0;
}

std::int64_t WorkerBatch::add(kv::Transaction& tx, const workers::WorkerRef& worker, const Job& job) {
  if (++jobs_ == 1 || names_.size() >= kMaxNames) return 0;
  if (jobs_ == 2) number_ = find_free(tx, worker);
  if (number_ != 0) Packer(names_).string(job.type).string(job.id);
  return number_;
}

void WorkerBatch::write(kv::Transaction& tx, const workers::WorkerRef& worker) const {
  if (number_ != 0) tx.set(batches_key(worker.role, worker.id).integer(number_).key(), names_);
}

void WorkerBatch::prefetch(kv::Prefetch& reads, const workers::WorkerRef& worker, std::int64_t first) {
  reads.key(batch_count_key(worker.role, worker.id, first));
}

std::optional<StoredBatch> parse_batch_key(std::string_view key) {
  const JobKey all("batch");
  Reader reader(key.substr(all.key().size()));
  auto role = reader.take_string();
  auto worker = role ? reader.take_string() : std::nullopt;
  const auto number = worker ? reader.take_int() : std::nullopt;
  if (!number) return std::nullopt;
  StoredBatch batch{.role = *std::move(role), .worker = *std::move(worker), .number = *number};
  if (!reader.at_end() && key != batch.count_key()) return std::nullopt;
  return batch;
}

std::optional<JobNames> decode_batch(std::string_view names) {
  JobNames jobs;
  for (Reader reader(names); !reader.at_end();) {
    auto type = reader.take_string();
    auto id = reader.take_string();
    if (!type || !id) return std::nullopt;
    jobs.emplace_back(*std::move(type), *std::move(id));
  }
  return jobs;
}

void visit_batches(QueueCore& queue, kv::Transaction& tx, const kv::KeyRange& range, kv::Isolation isolation,
                   const std::function<void(StoredBatch)>& visit) {
  std::optional<std::string> names;  // in the row before the counter
  tx.scan(range, {.isolation = isolation}, [&](std::string_view key, std::string_view value) {
    auto batch = parse_batch_key(key);
    if (batch && key != batch->count_key()) {
      names = value;
      return true;
    }
    const auto found = std::exchange(names, std::nullopt);
    if (batch) batch->running = kv::decode_counter(value);
    if (batch && batch->running > 0) {
      auto jobs = found ? decode_batch(*found) : std::nullopt;
      if (jobs) batch->jobs = *std::move(jobs);
      if (!jobs) batch.reset();
    }
    if (batch) {
      visit(*std::move(batch));
    } else {
      queue.report_damage(key, kDamagedRunningEntry);
    }
    return true;
  });
}

void remove_batch(kv::Transaction& tx, const StoredBatch& batch) {
  conflict_on(tx, batch.count_key());
  tx.clear(batch.names_key());
  tx.clear(batch.count_key());
}

}  // namespace divan::jobs
