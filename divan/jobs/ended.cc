#include "divan/jobs/ended.h"

#include "divan/base/check.h"
#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// Entries from `begin` on, and the key to continue with if there may be more.
struct Entries {
  std::vector<std::string> keys;
  std::optional<std::string> next;
};
Entries read_entries(kv::Transaction& tx, kv::KeyRange range, std::string_view begin, std::size_t limit) {
  if (range.begin < begin) range.begin = begin;
  Entries entries;
  if (range.begin >= range.end || limit == 0) return entries;
  tx.scan(range, {.limit = limit, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view) {
            entries.keys.emplace_back(key);
            return true;
          });
  if (entries.keys.size() >= limit) entries.next = entries.keys.back() + '\0';
  return entries;
}

// Reads the job of an entry; nullopt if the entry or the job is damaged or the job is missing.
std::optional<Job> job_of_entry(QueueCore& queue, kv::Transaction& tx, std::string_view type,
                                std::string_view key, const JobKey& prefix) {
  kv::tuple::Reader reader(key.substr(prefix.key().size()));
  const auto time = reader.take_int();
  const auto id = time ? reader.take_string() : std::nullopt;
  if (id) return queue.find_or_report(tx, type, *id);
  queue.report_damage(key, "An entry of the ended jobs is damaged and skipped.");
  return std::nullopt;
}

}  // namespace

EndedProgress prune(Queue& queue, kv::Transaction& tx, std::string_view type, std::size_t limit,
                    std::string_view begin) {
  const auto settings = queue.find_type(tx, type);
  if (!settings) return {};
  EndedProgress pruned;
  for (const State state : kEndedStates) {
    const std::int64_t before =
        queue.clock().wall_ms() -
        std::chrono::duration_cast<std::chrono::milliseconds>(settings->retention_of(state)).count();
    const JobKey prefix = JobKey("end").string(type).integer(static_cast<int>(state));
    const auto entries =
        read_entries(tx, {prefix.range().begin, JobKey(prefix).integer(before).key()}, begin, limit);
    for (const auto& key : entries.keys) {
      if (tx.approximate_size() > kFullTransaction) {
        pruned.next = key;
        return pruned;
      }
      const auto job = job_of_entry(queue, tx, type, key, prefix);
      if (!job || job->finished_at >= before || job->state != state) continue;
      unlink(tx, *job);
      queue.removed(tx, *job);
      ++pruned.jobs;
    }
    DIVAN_CHECK(entries.keys.size() <= limit, "{} entries were read of {}", entries.keys.size(), limit);
    limit -= entries.keys.size();
    if (entries.next) {
      pruned.next = entries.next;
      break;
    }
  }
  return pruned;
}

EndedProgress upgrade_ended(QueueCore& queue, kv::Transaction& tx, std::string_view type, std::size_t limit,
                            std::string_view begin) {
  const JobKey prefix = JobKey("fin").string(type);
  auto entries = read_entries(tx, prefix.range(), begin, limit);
  EndedProgress upgraded{.next = std::move(entries.next)};
  for (const auto& key : entries.keys) {
    auto job = job_of_entry(queue, tx, type, key, prefix);
    if (!job || !job->old_entry) continue;
    transition(tx, *job, [](Job&) {});
    ++upgraded.jobs;
  }
  return upgraded;
}

}  // namespace divan::jobs
