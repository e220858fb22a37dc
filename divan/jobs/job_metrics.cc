#include "divan/jobs/job_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <array>

#include "divan/base/json.h"

namespace divan::jobs {
namespace {

constexpr std::size_t kOutcomes = static_cast<std::size_t>(Outcome::cancelled) + 1;

// The most types that have metrics of their own: those whose jobs run first. All others share one name, which
// no type can have.
constexpr std::size_t kMaxMeasuredTypes = 200;
constexpr std::string_view kOtherTypes = "_other";

// In seconds.
const std::vector<double> kBuckets = {0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 600, 3600};

double seconds(std::int64_t ms) { return static_cast<double>(std::max<std::int64_t>(ms, 0)) / 1000; }

}  // namespace

struct JobMetrics::Change {
  std::string type;
  std::string_view state;
  std::int64_t time;
  std::int64_t attempt;
  std::optional<std::int64_t> waited_ms{};
  std::optional<std::int64_t> ran_ms{};
  std::optional<Outcome> outcome{};
  // Empty if there were no subscribers when the change was recorded.
  std::string id{};
  std::string worker_role{};
  std::string worker_id{};

  std::string json() const {
    std::string out;
    json::Writer writer(out);
    writer.begin_object().key("type").string(type).key("id").string(id).key("state").string(state);
    writer.key("attempt").number(attempt);
    if (outcome) writer.key("outcome").string(outcome_name(*outcome));
    if (!worker_id.empty()) {
      writer.key("worker").begin_object().key("role").string(worker_role).key("id").string(worker_id);
      writer.end_object();
    }
    writer.key("time").number(time).end_object();
    return out;
  }
};

struct JobMetrics::TypeMetrics {
  prometheus::Histogram* wait;
  prometheus::Histogram* run;
  std::array<prometheus::Counter*, kOutcomes> attempts;
  AttemptCounts counts;
};

std::string_view jobs_channel() {
  static const std::string name = events::channel_name({"_jobs"});
  return name;
}

void JobMetrics::measure(Metrics& metrics) { metrics_ = &metrics; }

void JobMetrics::publish(events::Bus& bus) { publisher_.emplace(bus.publisher(jobs_channel())); }

bool JobMetrics::has_subscribers() const { return publisher_ && publisher_->has_subscribers(); }

JobMetrics::Change JobMetrics::change_of(const Job& job, std::string_view state, std::int64_t now) const {
  Change change{.type = job.type, .state = state, .time = now, .attempt = job.attempt};
  if (has_subscribers()) {
    change.id = job.id;
    change.worker_role = job.worker_role;
    change.worker_id = job.worker_id;
  }
  return change;
}

void JobMetrics::changed(kv::Transaction& tx, const Job& job, std::int64_t now) {
  if (has_subscribers()) record(tx, change_of(job, state_name(job.state), now));
}

void JobMetrics::removed(kv::Transaction& tx, const Job& job, std::int64_t now) {
  if (has_subscribers()) record(tx, change_of(job, "removed", now));
}

void JobMetrics::started(kv::Transaction& tx, const Job& job, std::int64_t due_at) {
  if (!is_enabled()) return;
  Change change = change_of(job, state_name(job.state), job.started_at);
  change.waited_ms = job.started_at - due_at;
  record(tx, std::move(change));
}

void JobMetrics::ended(kv::Transaction& tx, const Job& before, const Job& job, Outcome outcome,
                       std::int64_t now) {
  if (!is_enabled()) return;
  Change change = change_of(before, state_name(job.state), now);
  change.ran_ms = now - before.started_at;
  change.outcome = job.state == State::cancelled ? Outcome::cancelled : outcome;
  record(tx, std::move(change));
}

void JobMetrics::record(kv::Transaction& tx, Change change) {
  auto& changes = tx.slot<std::vector<Change>>(this);
  if (changes.empty()) tx.after_commit([this, &changes] { report(changes); });
  changes.push_back(std::move(change));
}

void JobMetrics::report(const std::vector<Change>& changes) {
  if (metrics_ != nullptr) {
    std::lock_guard lock(mutex_);
    for (const Change& change : changes) count(change);
  }
  if (!publisher_) return;
  for (const Change& change : changes) {
    // Recorded before there were subscribers.
    if (change.id.empty()) continue;
    publisher_->publish([&] {
      return events::Event{std::string(change.state), {}, change.id, change.json()};
    });
  }
}

void JobMetrics::count(const Change& change) {
  if (!change.waited_ms && !change.ran_ms) return;
  TypeMetrics& metrics = metrics_of(change.type);
  AttemptCounts& counts = metrics.counts;
  if (change.waited_ms) {
    metrics.wait->Observe(seconds(*change.waited_ms));
    ++counts.started;
    counts.waited_ms += std::max<std::int64_t>(*change.waited_ms, 0);
  }
  if (change.ran_ms) {
    metrics.run->Observe(seconds(*change.ran_ms));
    ++counts.ended;
    counts.ran_ms += std::max<std::int64_t>(*change.ran_ms, 0);
  }
  if (!change.outcome) return;
  metrics.attempts[static_cast<std::size_t>(*change.outcome)]->Increment();
  if (change.outcome == Outcome::failed || change.outcome == Outcome::lost) ++counts.failed;
}

std::map<std::string, AttemptCounts> JobMetrics::counts() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, AttemptCounts> counts;
  for (const auto& [type, metrics] : types_) counts.emplace(type, metrics->counts);
  return counts;
}

JobMetrics::TypeMetrics& JobMetrics::metrics_of(const std::string& type) {
  if (const auto known = types_.find(type); known != types_.end()) return *known->second;
  if (types_.size() >= kMaxMeasuredTypes && type != kOtherTypes) return metrics_of(std::string(kOtherTypes));
  TypeMetrics metrics{
      .wait =
          &metrics_->histogram("divan_job_wait_seconds", "From when a job was due until its attempt began.",
                               kBuckets, {{"type", type}}),
      .run = &metrics_->histogram("divan_job_run_seconds", "From the beginning of an attempt to its end.",
                                  kBuckets, {{"type", type}}),
      .attempts = {},
      .counts = {}};
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    metrics.attempts[i] =
        &metrics_->counter("divan_job_attempts_total", "Attempts by how they ended.",
                           {{"type", type}, {"outcome", std::string(outcome_name(static_cast<Outcome>(i)))}});
  }
  return *types_.emplace(type, std::make_shared<TypeMetrics>(metrics)).first->second;
}

}  // namespace divan::jobs
