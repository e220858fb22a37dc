#include "divan/index/slots.h"

#include <algorithm>
#include <utility>

#include "divan/base/check.h"
#include "divan/index/builds.h"

namespace divan::index {
namespace {

// Time for which a job that was not small is large from the beginning.
constexpr Duration kSlowFor = std::chrono::minutes(10);
constexpr std::size_t kMaxSlow = 10'000;

// Lower values come first: the priorities of builds, and between them that of a query whose index is slow.
constexpr int kSlowQueryUrgency = 15;

}  // namespace

Slots::Slots(std::size_t large, const Clock& clock)
    : large_(std::max<std::size_t>(large, 1)), clock_(clock), slow_(kSlowFor, kMaxSlow) {}

std::optional<Slots::Id> Slots::begin(RunningBuild build) {
  std::lock_guard lock(mutex_);
  build.small = !is_large({.priority = build.priority, .id = build.job}, clock_.now());
  if (!may_begin(build.database, !build.small, build.priority, std::nullopt)) {
    skipped_ = true;
    return std::nullopt;
  }
  const bool is_new = running_.emplace(next_id_, std::move(build)).second;
  DIVAN_CHECK(is_new, "two builds have the slot {}", next_id_);
  return next_id_++;
}

void Slots::end(Id id) {
  std::lock_guard lock(mutex_);
  const auto ended = running_.erase(id);
  DIVAN_CHECK(ended == 1, "build {} has no slot when it ends", id);
}

void Slots::set_design_document(Id id, std::string_view design_document) {
  std::lock_guard lock(mutex_);
  running_.at(id).design_document = design_document;
}

bool Slots::enlarge(Id id) {
  std::lock_guard lock(mutex_);
  RunningBuild& build = running_.at(id);
  if (!build.small) return true;
  slow_.add(build.job, clock_.now());
  if (!may_begin(build.database, true, build.priority, id)) return false;
  build.small = false;
  return true;
}

bool Slots::is_small(Id id) const {
  std::lock_guard lock(mutex_);
  return running_.at(id).small;
}

void Slots::order(std::vector<jobs::DueJob>& due) {
  std::lock_guard lock(mutex_);
  skipped_ |= order_without(due, std::nullopt);
}

bool Slots::yields_to(Id id, const std::vector<jobs::DueJob>& due, bool free_thread, bool slice_is_over) {
  if (due.empty()) return false;
  std::lock_guard lock(mutex_);
  if (free_thread) {
    auto now_possible = due;
    order_without(now_possible, std::nullopt);
    if (!now_possible.empty()) return false;
  }
  auto possible = due;
  order_without(possible, id);
  if (possible.empty()) return false;
  const MonotonicTime now = clock_.now();
  const RunningBuild& own = running_.at(id);
  // A running build is judged by its priority only.
  const int own_urgency = urgency({.priority = own.priority}, now);
  const int others = urgency(possible.front(), now);
  return others < own_urgency || (slice_is_over && others == own_urgency);
}

std::vector<RunningBuild> Slots::running() const {
  std::lock_guard lock(mutex_);
  std::vector<RunningBuild> builds;
  builds.reserve(running_.size());
  for (const auto& [id, build] : running_) builds.push_back(build);
  return builds;
}

bool Slots::reset_skipped() {
  std::lock_guard lock(mutex_);
  return std::exchange(skipped_, false);
}

bool Slots::is_large(const jobs::DueJob& job, MonotonicTime now) const {
  return (job.priority != kQueryPriority && job.priority != kCatchUpPriority) || slow_.contains(job.id, now);
}

int Slots::urgency(const jobs::DueJob& job, MonotonicTime now) const {
  // An overdue build is large, but is accepted like the small ones.
  if (job.priority == kOverduePriority) return static_cast<int>(kCatchUpPriority);
  if (!slow_.contains(job.id, now))
    return static_cast<int>(std::clamp<std::int64_t>(job.priority, 0, INT_MAX));
  return job.priority == kQueryPriority ? kSlowQueryUrgency : static_cast<int>(kBuildPriority);
}

// Returns true if one more build of the database may run. `without`: a build that is not counted.
bool Slots::may_begin(std::string_view database, bool large, std::int64_t priority,
                      std::optional<Id> without) const {
  if (!large && priority == kQueryPriority) return true;
  std::size_t others = 0;  // builds that do not use the last thread, which is for queries
  std::size_t all_large = 0;
  std::size_t own_large = 0;
  for (const auto& [id, build] : running_) {
    if (id == without || (build.small && build.priority == kQueryPriority)) continue;
    ++others;
    if (build.small) continue;
    ++all_large;
    if (build.database == database) ++own_large;
  }
  if (others >= threads() - 1) return false;
  const std::size_t most_of_one = std::max<std::size_t>(large_ - 1, 1);
  return !large || (all_large < large_ && own_large < most_of_one);
}

// Returns true if it skipped any jobs.
bool Slots::order_without(std::vector<jobs::DueJob>& due, std::optional<Id> without) const {
  const MonotonicTime now = clock_.now();
  const auto skipped = std::erase_if(due, [&](const jobs::DueJob& job) {
    return !may_begin(database_of_build(job.id), is_large(job, now), job.priority, without);
  });
  std::map<std::string_view, std::size_t> builds;  // by database
  for (const auto& [id, build] : running_) {
    if (id != without) ++builds[build.database];
  }
  struct Ranked {
    int urgency;
    std::size_t builds;
    std::size_t index;  // in `due`
  };
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto found = builds.find(database_of_build(due[i].id));
    ranked.push_back({urgency(due[i], now), found == builds.end() ? 0 : found->second, i});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.urgency, a.builds, a.index) < std::tie(b.urgency, b.builds, b.index);
  });
  std::vector<jobs::DueJob> ordered;
  ordered.reserve(due.size());
  for (const Ranked& one : ranked) ordered.push_back(std::move(due[one.index]));
  due = std::move(ordered);
  return skipped > 0;
}

}  // namespace divan::index
