#include "divan/jobs/due.h"

#include "divan/jobs/queue_core.h"

namespace divan::jobs {

DueScanner::DueScanner(QueueCore& queue, kv::Transaction& tx, std::string_view type, std::int64_t due_until,
                       std::size_t most_behind)
    : queue_(queue), tx_(tx), prefix_(all(type)), due_until_(due_until), most_behind_(most_behind) {}

DueScan DueScanner::scan(std::size_t limit, std::size_t window, const QueueCursor& cursor) {
  DueScan found{.jobs = {}, .cursor = cursor};
  kv::KeyRange range = prefix_.range();
  if (!cursor.begin.empty()) range.begin = cursor.begin;
  for (std::size_t behind = 0; found.jobs.size() < limit; behind += found.jobs.empty() ? 0 : 1) {
    found.cut = behind > most_behind_;
    if (found.cut) break;
    const auto later = scan_some(range, limit, window, found);
    if (!later) {
      found.cursor.begin =
          found.jobs.size() < limit ? range.end : priority_range(found.jobs.back().priority).begin;
      break;
    }
    range.begin = found.cursor.begin = priority_range(*later).end;
  }
  return found;
}

std::optional<DueJob> DueScanner::parse(std::string_view key, std::string_view header) {
  kv::tuple::Reader reader(key.substr(prefix_.key().size()));
  const auto priority = reader.take_int();
  const auto due_at = reader.take_int();
  auto id = reader.take_string();
  if (!priority || !due_at || !id) {
    queue_.report_damage(key, "An entry of the job queue is damaged and skipped.");
    return std::nullopt;
  }
  return DueJob{*priority, *due_at, *std::move(id), std::string(key), std::string(header)};
}

std::optional<std::int64_t> DueScanner::scan_some(const kv::KeyRange& range, std::size_t limit,
                                                  std::size_t window, DueScan& found) {
  std::optional<std::int64_t> later;
  tx_.scan(range, {.isolation = kv::Isolation::snapshot}, [&](std::string_view key, std::string_view header) {
    if (skipped_.contains(key)) return true;
    auto job = parse(key, header);
    if (!job) return true;
    auto& jobs = found.jobs;
    if (jobs.size() >= limit && job->priority != jobs.back().priority) return false;
    if (job->due_at > due_until_) {
      auto& next = found.cursor.next_due_at;
      next = std::min(next.value_or(job->due_at), job->due_at);
      later = job->priority;
      return false;
    }
    jobs.push_back(*std::move(job));
    return jobs.size() < (jobs.back().priority == jobs.front().priority ? window : limit);
  });
  return later;
}

}  // namespace divan::jobs
