#include "divan/jobs/queue_core.h"

#include <fmt/core.h>

#include "divan/base/log.h"
#include "divan/jobs/rows.h"
#include "divan/kv/tuple.h"

namespace divan::jobs {
namespace {

// The most damaged rows that are reported.
constexpr std::size_t kMaxReported = 10'000;

}  // namespace

std::optional<TypeSettings> QueueCore::find_type(kv::Transaction& tx, std::string_view type) {
  const auto json = tx.get(type_key(type));
  if (!json) return std::nullopt;
  return stored_settings(*json);
}

TypeSettings QueueCore::type(kv::Transaction& tx, std::string_view type) {
  const auto settings = find_type(tx, type);
  if (!settings) throw no_such_job_type(type);
  return *settings;
}

std::vector<std::string> QueueCore::types(kv::Transaction& tx) {
  std::vector<std::string> types;
  const JobKey prefix("type");
  tx.scan(prefix.range(), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view) {
            types.push_back(kv::tuple::Reader(key.substr(prefix.key().size())).take_string().value_or(""));
            return true;
          });
  return types;
}

std::map<State, std::int64_t> QueueCore::counts(kv::Transaction& tx, std::string_view type) {
  std::vector<std::string> keys;
  for (const State state : kStates) keys.push_back(count_key(type, state));
  const auto counters = tx.get_many(keys, kv::Isolation::snapshot);
  std::map<State, std::int64_t> counts;
  for (std::size_t i = 0; i < counters.size(); ++i) counts[kStates[i]] = kv::decode_counter(counters[i]);
  return counts;
}

std::optional<Job> QueueCore::find(kv::Transaction& tx, std::string_view type, std::string_view id,
                                   kv::Isolation isolation) {
  return read_job(tx, type, id, isolation);
}

std::optional<Job> QueueCore::find_or_report(kv::Transaction& tx, std::string_view type, std::string_view id,
                                             kv::Isolation isolation) {
  try {
    return read_job(tx, type, id, isolation);
  } catch (const Error& error) {
    report_damage(JobKey("job").string(type).string(id).key(),
                  fmt::format("Job {}/{} is skipped: {}", type, id, error.reason()));
    return std::nullopt;
  }
}

std::string QueueCore::data(kv::Transaction& tx, const Job& job) { return read_data(tx, job); }

std::optional<std::string> QueueCore::result(kv::Transaction& tx, const Job& job) {
  return read_result(tx, job);
}

std::shared_ptr<kv::Watch> QueueCore::watch(kv::Transaction& tx, std::string_view type, std::string_view id) {
  return tx.try_watch(JobKey("job").string(type).string(id).key());
}

void QueueCore::prefetch(kv::Transaction& tx, std::string_view type, std::span<const std::string_view> ids) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  reads.key(type_key(type));
  for (const auto id : ids) prefetch_job(reads, type, id);
  tx.prefetch(reads);
}

void QueueCore::report_damage(std::string_view key, std::string_view what) {
  {
    std::lock_guard lock(damaged_mutex_);
    if (damaged_.size() >= kMaxReported || !damaged_.emplace(key).second) return;
  }
  log::error("{} (Row {}.) `divan verify` lists all damaged rows.", what, kv::tuple::describe(key));
}

}  // namespace divan::jobs
