#include "divan/jobs/listing.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/jobs/rows.h"
#include "divan/jobs/worker_jobs.h"

namespace divan::jobs {
namespace {

constexpr kv::RangeOptions kSnapshot{.isolation = kv::Isolation::snapshot};

// A range that a list reads: keys with elements of a shape, followed by the job's id.
struct ListRange {
  JobKey prefix;
  std::string_view shape;  // of the elements between the prefix and the id, as in kv::has_shape()
};

ListRange range_of(std::string_view type, std::optional<State> state) {
  if (!state) return {JobKey("job").string(type), ""};
  if (*state == State::pending) return {JobKey("pend").string(type).integer(kShard), "ii"};
  return {JobKey("end").string(type).integer(static_cast<int>(*state)), "i"};
}

// The id in a key of the range, or nullopt if the key is damaged.
std::optional<std::string> id_in(const ListRange& range, std::string_view key) {
  kv::tuple::Reader reader(key.substr(range.prefix.key().size()));
  for (std::size_t i = 0; i < range.shape.size(); ++i) {
    if (!reader.take_int()) return std::nullopt;
  }
  return reader.take_string();
}

std::string parse_start(std::string_view start) {
  const auto bytes = from_hex(start);
  if (!bytes)
    throw bad_request(fmt::format("`start` is `{}`; expected the `next` of a previous page.", start));
  return *bytes;
}

// The ids of the running jobs of a type, in order.
std::vector<std::string> running_ids(Queue& queue, kv::Transaction& tx, std::string_view type) {
  std::vector<std::string> ids;
  const JobKey alone = JobKey("act").string(type).integer(kShard);
  tx.scan(alone.range(), kSnapshot, [&](std::string_view key, std::string_view) {
    kv::tuple::Reader reader(key.substr(alone.key().size()));
    const auto stamp = reader.take_versionstamp();
    if (auto id = stamp ? reader.take_string() : std::nullopt) {
      ids.push_back(*std::move(id));
    } else {
      queue.report_damage(key, kDamagedRunningEntry);
    }
    return true;
  });
  for_each_worker_job(queue, tx, type,
                      [&](const WorkerJobEntry&, const std::string& id) { ids.push_back(id); });
  std::sort(ids.begin(), ids.end());
  return ids;
}

// A job of a list and its position.
struct Name {
  std::string id;
  std::string start;  // ListOptions::start for a page that begins with it
};

// The first jobs of a list: one more than `limit` if there are more.
std::vector<Name> running_names(Queue& queue, kv::Transaction& tx, std::string_view type,
                                const ListOptions& options) {
  auto ids = running_ids(queue, tx, type);
  const std::string start = options.start.empty() ? options.start_id : parse_start(options.start);
  if (options.descending) {
    if (!start.empty()) ids.erase(std::upper_bound(ids.begin(), ids.end(), start), ids.end());
    std::reverse(ids.begin(), ids.end());
  } else {
    ids.erase(ids.begin(), std::lower_bound(ids.begin(), ids.end(), start));
  }
  if (ids.size() > options.limit) ids.resize(options.limit + 1);
  std::vector<Name> names;
  for (auto& id : ids) {
    std::string start_here = to_hex(id);
    names.push_back({std::move(id), std::move(start_here)});
  }
  return names;
}

std::vector<Name> indexed_names(Queue& queue, kv::Transaction& tx, std::string_view type,
                                const ListOptions& options,
                                std::optional<std::int64_t> until = std::nullopt) {
  const ListRange range = range_of(type, options.state);
  kv::KeyRange keys = range.prefix.range();
  if (until) keys.end = JobKey(range.prefix).integer(std::min(*until, INT64_MAX - 1) + 1).key();
  std::string start;
  if (!options.start.empty()) {
    start = range.prefix.key() + parse_start(options.start);
  } else if (!options.start_id.empty() && !options.state) {
    start = JobKey(range.prefix).string(options.start_id).key();
  } else if (!options.start_id.empty()) {
    const auto job = queue.find(tx, type, options.start_id, kv::Isolation::snapshot);
    if (!job || job->state != *options.state) {
      throw not_found(
          fmt::format("Job `{}`, the start of the list, is not {}; continue with `start`, the `next` of "
                      "the previous page.",
                      options.start_id, state_name(*options.state)));
    }
    start = entry_key(*job);
  }
  if (!start.empty())
    (options.descending ? keys.end : keys.begin) = options.descending ? start + '\0' : start;
  std::vector<Name> names;
  if (keys.begin >= keys.end) return names;
  const kv::RangeOptions scan{.reverse = options.descending, .isolation = kv::Isolation::snapshot};
  tx.scan(keys, scan, [&](std::string_view key, std::string_view) {
    if (auto id = id_in(range, key)) {
      names.push_back({*std::move(id), to_hex(key.substr(range.prefix.key().size()))});
    } else {
      queue.report_damage(key, "An entry of the job queue is damaged and skipped.");
    }
    return names.size() <= options.limit;
  });
  return names;
}

std::vector<Name> names_of(Queue& queue, kv::Transaction& tx, std::string_view type,
                           const ListOptions& options, std::optional<std::int64_t> until = std::nullopt) {
  if (options.state == State::running) return running_names(queue, tx, type, options);
  return indexed_names(queue, tx, type, options, until);
}

void change_one(Queue& queue, kv::Transaction& tx, const Job& job, BulkChange change) {
  switch (change) {
    case BulkChange::cancel: return queue.cancel(tx, job.type, job.id);
    case BulkChange::resubmit: return queue.resubmit(tx, job.type, job.id);
    case BulkChange::remove: return queue.remove(tx, job.type, job.id);
  }
}

}  // namespace

Listed list_jobs(Queue& queue, kv::Transaction& tx, std::string_view type, const ListOptions& options) {
  Listed listed;
  if (options.limit == 0) return listed;
  auto names = names_of(queue, tx, type, options);
  if (names.size() > options.limit) {
    listed.next = names.back().start;
    names.pop_back();
  }
  DIVAN_CHECK(names.size() <= options.limit, "{} jobs are listed of {}", names.size(), options.limit);
  std::vector<std::string_view> ids;
  for (const auto& name : names) ids.push_back(name.id);
  Queue::prefetch(tx, type, ids);
  for (const auto id : ids) {
    auto job = queue.find_or_report(tx, type, id, kv::Isolation::snapshot);
    if (job && (!options.state || job->state == *options.state)) listed.jobs.push_back(*std::move(job));
  }
  return listed;
}

BulkProgress change_jobs(Queue& queue, kv::Transaction& tx, std::string_view type, State state,
                         BulkChange change, std::string_view start, std::int64_t until, std::size_t limit) {
  BulkProgress progress;
  // An ended job cannot be cancelled.
  if (change == BulkChange::cancel && has_ended(state)) return progress;
  const auto names = names_of(queue, tx, type, {.state = state, .start = std::string(start), .limit = limit},
                              has_ended(state) ? std::optional(until) : std::nullopt);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i >= limit || tx.approximate_size() > kFullTransaction) {
      progress.next = names[i].start;
      break;
    }
    const auto job = queue.find_or_report(tx, type, names[i].id);
    if (!job || job->state != state) continue;
    change_one(queue, tx, *job, change);
    ++progress.jobs;
  }
  return progress;
}

}  // namespace divan::jobs
