#include "divan/api/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "divan/base/json.h"

namespace divan::api {
namespace {

// The name of all types beyond those that are counted on their own (JobMetrics::counts()).
constexpr std::string_view kOtherTypes = "_other";

using Member = std::int64_t jobs::AttemptCounts::*;

constexpr std::pair<std::string_view, Member> kMembers[] = {{"started", &jobs::AttemptCounts::started},
                                                            {"waited_ms", &jobs::AttemptCounts::waited_ms},
                                                            {"ended", &jobs::AttemptCounts::ended},
                                                            {"ran_ms", &jobs::AttemptCounts::ran_ms},
                                                            {"failed", &jobs::AttemptCounts::failed}};

// What was counted since `before`.
jobs::AttemptCounts difference(const jobs::AttemptCounts& now, const jobs::AttemptCounts& before) {
  jobs::AttemptCounts counts;
  for (const auto& [name, member] : kMembers) counts.*member = now.*member - before.*member;
  return counts;
}

bool is_zero(const jobs::AttemptCounts& counts) {
  return std::ranges::all_of(kMembers, [&](const auto& each) { return counts.*each.second == 0; });
}

}  // namespace

History::History(const Clock& clock, std::function<Counts()> jobs)
    : clock_(clock), jobs_(std::move(jobs)), sampled_at_(clock.now()), loop_(clock, "history", [this] {
        if (clock_.now() - sampled_at_ >= kInterval) sample();
        return sampled_at_ + kInterval;
      }) {}

void History::add(std::string name, Kind kind, std::function<double()> value) {
  const double now = value();
  values_.push_back({std::move(name), kind, std::move(value), now});
}

void History::sample() {
  const MonotonicTime now = clock_.now();
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - sampled_at_).count());
  Sample sample{.at = now, .values = {}, .jobs = {}};
  for (Value& each : values_) {
    const double value = each.read();
    sample.values.push_back(each.kind == Kind::gauge ? value : (value - each.before) / seconds);
    each.before = value;
  }
  Counts counts = jobs_();
  sampled_at_ = now;
  std::lock_guard lock(mutex_);
  for (const auto& [type, count] : counts) {
    const auto since = difference(count, jobs_before_[type]);
    if (!is_zero(since)) sample.jobs.emplace_back(types_.emplace(type, types_.size()).first->second, since);
  }
  jobs_before_ = std::move(counts);
  samples_.push_back(std::move(sample));
  if (samples_.size() > kSamples) samples_.pop_front();
}

const std::pair<const std::string, std::size_t>* History::counted_type(std::string_view type) const {
  auto found = types_.find(type);
  if (found == types_.end()) found = types_.find(kOtherTypes);
  return found == types_.end() ? nullptr : &*found;
}

std::string History::json(std::size_t samples, std::string_view type) const {
  const MonotonicTime now = clock_.now();
  const std::int64_t wall_ms = clock_.wall_ms();
  std::lock_guard lock(mutex_);
  const std::size_t first = samples_.size() - std::min(samples, samples_.size());
  std::string out;
  json::Writer writer(out);
  const auto array = [&](std::string_view name, const auto& write) {
    writer.key(name).begin_array();
    for (std::size_t i = first; i < samples_.size(); ++i) write(samples_[i]);
    writer.end_array();
  };
  writer.begin_object()
      .key("interval")
      .number(std::chrono::duration_cast<std::chrono::seconds>(kInterval).count());
  array("times", [&](const Sample& sample) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - sample.at).count();
    writer.raw(fmt::format("{:.3f}", static_cast<double>(wall_ms - age) / 1000));
  });
  writer.key("series").begin_object();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    array(values_[i].name,
          [&](const Sample& sample) { writer.raw(fmt::format("{:.6g}", sample.values[i])); });
  }
  writer.end_object().key("jobs_of");
  const auto* counted = counted_type(type);
  type.empty() ? writer.null() : writer.string(counted == nullptr ? type : std::string_view(counted->first));
  writer.key("jobs").begin_object();
  for (const auto& [name, member] : kMembers) {
    array(name, [&, member = member](const Sample& sample) {
      std::int64_t sum = 0;
      for (const auto& [each, counts] : sample.jobs) {
        if (type.empty() || (counted != nullptr && counted->second == each)) sum += counts.*member;
      }
      writer.number(sum);
    });
  }
  writer.end_object().end_object();
  return out;
}

}  // namespace divan::api
