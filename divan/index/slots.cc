#include "divan/index/slots.h"

#include <algorithm>

#include "divan/index/builds.h"

namespace divan::index {
namespace {

// For how long a job that was not small counts as large.
constexpr Duration kSlowFor = std::chrono::minutes(10);
constexpr std::size_t kMaxSlow = 10'000;

// Lower is first: the priorities of builds, and between them that of a query whose index is slow.
constexpr int kSlowQueryUrgency = 15;

}  // namespace

Slots::Slots(std::size_t large, const Clock& clock)
    : large_(std::max<std::size_t>(large, 1)), clock_(clock) {}

std::optional<Slots::Id> Slots::begin(RunningBuild build, std::stop_source stop) {
  std::lock_guard lock(mutex_);
  build.small = !is_large({.priority = build.priority, .id = build.job}, clock_.now());
  if (!build.small && !has_slot(build.database, std::nullopt)) {
    left_out_ = true;
    return std::nullopt;
  }
  running_.emplace(next_id_, Entry{std::move(build), std::move(stop)});
  return next_id_++;
}

void Slots::end(Id id) {
  std::lock_guard lock(mutex_);
  running_.erase(id);
}

void Slots::set_design_document(Id id, std::string_view design_document) {
  std::lock_guard lock(mutex_);
  running_.at(id).build.design_document = design_document;
}

bool Slots::enlarge(Id id) {
  std::lock_guard lock(mutex_);
  RunningBuild& build = running_.at(id).build;
  if (!build.small) return true;
  note_slow(build.job);
  if (!has_slot(build.database, id)) return false;
  build.small = false;
  return true;
}

bool Slots::is_small(Id id) const {
  std::lock_guard lock(mutex_);
  return running_.at(id).build.small;
}

void Slots::order(std::vector<jobs::DueJob>& due) {
  std::lock_guard lock(mutex_);
  left_out_ |= order_without(due, std::nullopt);
}

bool Slots::gives_way(Id id, const std::vector<jobs::DueJob>& due, bool free_thread, bool turn_is_over) {
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
  const RunningBuild& own = running_.at(id).build;
  // What has a thread is judged by its priority alone.
  const int own_urgency = urgency({.priority = own.priority}, now);
  const int others = urgency(possible.front(), now);
  return others < own_urgency || (turn_is_over && others == own_urgency);
}

void Slots::stop(std::string_view database) {
  std::vector<std::stop_source> stops;
  {
    std::lock_guard lock(mutex_);
    for (auto& [id, entry] : running_) {
      if (entry.build.database == database) stops.push_back(entry.stop);
    }
  }
  for (auto& stop : stops) stop.request_stop();
}

std::vector<RunningBuild> Slots::running() const {
  std::lock_guard lock(mutex_);
  std::vector<RunningBuild> builds;
  builds.reserve(running_.size());
  for (const auto& [id, entry] : running_) builds.push_back(entry.build);
  return builds;
}

bool Slots::take_left_out() {
  std::lock_guard lock(mutex_);
  return std::exchange(left_out_, false);
}

bool Slots::is_slow(const std::string& job, MonotonicTime now) const {
  const auto found = slow_.find(job);
  return found != slow_.end() && found->second > now;
}

bool Slots::is_large(const jobs::DueJob& job, MonotonicTime now) const {
  return (job.priority != kQueryPriority && job.priority != kCatchUpPriority) || is_slow(job.id, now);
}

int Slots::urgency(const jobs::DueJob& job, MonotonicTime now) const {
  // It has waited for its turn.
  if (job.priority == kOverduePriority) return static_cast<int>(kCatchUpPriority);
  if (!is_slow(job.id, now)) return static_cast<int>(std::clamp<std::int64_t>(job.priority, 0, INT_MAX));
  return job.priority == kQueryPriority ? kSlowQueryUrgency : static_cast<int>(kBuildPriority);
}

// Whether one more large build of the database may run. `without`: a build that does not count.
bool Slots::has_slot(std::string_view database, std::optional<Id> without) const {
  std::size_t all = 0;
  std::size_t own = 0;
  for (const auto& [id, entry] : running_) {
    if (id == without || entry.build.small) continue;
    ++all;
    if (entry.build.database == database) ++own;
  }
  const std::size_t most_of_one = std::max<std::size_t>(large_ - 1, 1);
  return all < large_ && own < most_of_one;
}

void Slots::note_slow(const std::string& job) {
  const MonotonicTime now = clock_.now();
  if (slow_.size() >= kMaxSlow) {
    std::erase_if(slow_, [&](const auto& entry) { return entry.second <= now; });
    if (slow_.size() >= kMaxSlow) slow_.erase(slow_.begin());
  }
  slow_.insert_or_assign(job, now + kSlowFor);
}

// Whether it left out any.
bool Slots::order_without(std::vector<jobs::DueJob>& due, std::optional<Id> without) const {
  const MonotonicTime now = clock_.now();
  const auto left_out = std::erase_if(due, [&](const jobs::DueJob& job) {
    return is_large(job, now) && !has_slot(database_of_build(job.id), without);
  });
  std::map<std::string_view, std::size_t> builds;  // by database
  for (const auto& [id, entry] : running_) {
    if (id != without) ++builds[entry.build.database];
  }
  struct Ranked {
    int urgency;
    std::size_t builds;
    std::size_t place;
  };
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto found = builds.find(database_of_build(due[i].id));
    ranked.push_back({urgency(due[i], now), found == builds.end() ? 0 : found->second, i});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.urgency, a.builds, a.place) < std::tie(b.urgency, b.builds, b.place);
  });
  std::vector<jobs::DueJob> ordered;
  ordered.reserve(due.size());
  for (const Ranked& one : ranked) ordered.push_back(std::move(due[one.place]));
  due = std::move(ordered);
  return left_out > 0;
}

}  // namespace divan::index
