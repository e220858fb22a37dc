#include "divan/jobs/types.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/jobs/schedule.h"

namespace divan::jobs {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::int64_t to_ms(Duration duration) { return duration_cast<milliseconds>(duration).count(); }

// Parses a setting in milliseconds within [min, max].
Duration take_duration(const boost::json::value& value, std::string_view name, Duration min, Duration max) {
  const std::int64_t* ms = value.if_int64();
  // Compared as milliseconds: as nanoseconds it may not fit.
  if (ms == nullptr || *ms < to_ms(min) || *ms > to_ms(max)) {
    throw bad_request(fmt::format("`{}` is {}; expected a number of milliseconds from {} to {}.", name,
                                  boost::json::serialize(value), to_ms(min), to_ms(max)));
  }
  return milliseconds(*ms);
}

constexpr std::string_view kStateNames[] = {"pending", "running", "finished", "failed", "cancelled"};

constexpr std::string_view kOutcomeNames[] = {"finished", "failed", "lost", "released", "cancelled"};

void append_time(json::Writer& writer, std::string_view name, std::int64_t ms) {
  if (ms != 0) writer.key(name).number(ms);
}

// Parses a positive number, or null.
std::optional<std::int64_t> take_limit(const boost::json::value& value, std::string_view name) {
  if (value.is_null()) return std::nullopt;
  const std::int64_t* most = value.if_int64();
  if (most == nullptr || *most < 1)
    throw bad_request(fmt::format("`{}` is {}; expected a number of at least 1, or null.", name,
                                  boost::json::serialize(value)));
  return *most;
}

enum class Schedules { check, trust };

TypeSettings read_settings(std::string_view text, const TypeSettings& base, Schedules schedules) {
  using std::chrono::hours;
  TypeSettings settings = base;
  for (const auto& [name, value] : json::parse_object(text)) {
    if (name == "timeout") {
      settings.timeout = take_duration(value, name, milliseconds(100), hours(24 * 7));
    } else if (name == "backoff_min") {
      settings.backoff_min = take_duration(value, name, milliseconds(0), hours(24 * 365));
    } else if (name == "backoff_max") {
      settings.backoff_max = take_duration(value, name, milliseconds(0), hours(24 * 365));
    } else if (name == "retention") {
      settings.retention = take_duration(value, name, milliseconds(0), hours(24 * 3650));
    } else if (name == "max_attempts") {
      const std::int64_t* attempts = value.if_int64();
      if (attempts == nullptr || *attempts < 1) {
        throw bad_request(fmt::format("`max_attempts` is {}; expected a number of at least 1.",
                                      boost::json::serialize(value)));
      }
      settings.max_attempts = *attempts;
    } else if (name == "max_running") {
      settings.max_running = take_limit(value, name);
    } else if (name == "max_lost") {
      settings.max_lost = take_limit(value, name);
    } else if (name == "max_runtime") {
      settings.max_runtime.reset();
      if (!value.is_null())
        settings.max_runtime = take_duration(value, name, milliseconds(100), hours(24 * 365));
    } else if (name == "retention_failed") {
      settings.retention_failed.reset();
      if (!value.is_null())
        settings.retention_failed = take_duration(value, name, milliseconds(0), hours(24 * 3650));
    } else if (name == "paused") {
      if (!value.is_bool()) {
        throw bad_request(
            fmt::format("`paused` is {}; expected true or false.", boost::json::serialize(value)));
      }
      settings.paused = value.get_bool();
    } else if (name == "schedule") {
      settings.schedule = value.is_null() ? "" : boost::json::serialize(value);
      if (schedules == Schedules::check && !settings.schedule.empty())
        settings.schedule = Schedule::of_json(settings.schedule).json();
    } else if (name == "deliver") {
      if (!value.is_null() && !value.is_object())
        throw bad_request(
            fmt::format("`deliver` is {}; expected an object or null.", boost::json::serialize(value)));
      settings.deliver = value.is_null() ? "" : boost::json::serialize(value);
    } else {
      throw bad_request(fmt::format("Unknown setting `{}` of a job type.", std::string_view(name)));
    }
  }
  return settings;
}

void check_backoff(const TypeSettings& settings) {
  if (settings.backoff_min > settings.backoff_max) throw bad_request("`backoff_min` exceeds `backoff_max`.");
}

}  // namespace

TypeSettings parse_settings(std::string_view text, const TypeSettings& base) {
  auto settings = read_settings(text, base, Schedules::check);
  check_backoff(settings);
  return settings;
}

TypeSettings stored_settings(std::string_view json) { return read_settings(json, {}, Schedules::trust); }

std::string settings_json(const TypeSettings& settings) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  writer.key("timeout").number(to_ms(settings.timeout));
  writer.key("max_attempts").number(settings.max_attempts);
  writer.key("max_lost");
  settings.max_lost ? writer.number(*settings.max_lost) : writer.null();
  writer.key("max_runtime");
  settings.max_runtime ? writer.number(to_ms(*settings.max_runtime)) : writer.null();
  writer.key("backoff_min").number(to_ms(settings.backoff_min));
  writer.key("backoff_max").number(to_ms(settings.backoff_max));
  writer.key("max_running");
  settings.max_running ? writer.number(*settings.max_running) : writer.null();
  writer.key("retention").number(to_ms(settings.retention));
  writer.key("retention_failed");
  settings.retention_failed ? writer.number(to_ms(*settings.retention_failed)) : writer.null();
  writer.key("paused").boolean(settings.paused).key("schedule");
  settings.schedule.empty() ? writer.null() : writer.raw(settings.schedule);
  if (!settings.deliver.empty()) writer.key("deliver").raw(settings.deliver);
  writer.end_object();
  return out;
}

std::string job_limits(std::string_view json) {
  const auto given = json::parse_object(json);
  for (const auto& [name, value] : given) {
    if (std::ranges::find(kJobLimits, std::string_view(name)) == std::end(kJobLimits))
      throw bad_request(fmt::format("Unknown setting `{}` of a job.", std::string_view(name)));
  }
  const auto settings = read_settings(json, {}, Schedules::check);
  if (given.contains("backoff_min") && given.contains("backoff_max")) check_backoff(settings);
  if (given.empty()) return {};
  boost::json::object limits;
  for (const auto name : kJobLimits) {
    if (const auto* value = given.if_contains(name)) limits.emplace(name, *value);
  }
  return boost::json::serialize(limits);
}

TypeSettings with_limits(const TypeSettings& settings, std::string_view limits) {
  if (limits.empty()) return settings;
  auto own = read_settings(limits, settings, Schedules::trust);
  // One of the two may be the type's.
  own.backoff_max = std::max(own.backoff_min, own.backoff_max);
  return own;
}

void check_name(std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '_' || !is_utf8(name)) {
    throw bad_request(fmt::format(
        "Invalid {} of a job; expected 1 to {} bytes of UTF-8 that do not begin with an underscore.", what,
        kMaxNameBytes));
  }
}

std::string_view state_name(State state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::string_view outcome_name(Outcome outcome) { return kOutcomeNames[static_cast<std::size_t>(outcome)]; }

std::optional<State> state_of(std::string_view name) {
  for (const State state : kStates) {
    if (state_name(state) == name) return state;
  }
  return std::nullopt;
}

std::string job_json(const Job& job, const JobParts& parts) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("type").string(job.type).key("id").string(job.id);
  writer.key("state").string(state_name(job.state));
  writer.key("priority").number(job.priority).key("scheduled_at").number(job.scheduled_at);
  if (job.state == State::pending) writer.key("due_at").number(job.due_at);
  if (!job.schedule.empty()) writer.key("schedule").raw(job.schedule);
  if (!job.limits.empty()) {
    json::for_each_member(job.limits, [&](std::string_view name, std::string_view value) {
      writer.key(name).raw(value);
      return true;
    });
  }
  writer.key("attempt")
      .number(job.attempt)
      .key("failures")
      .number(job.failures)
      .key("epoch")
      .number(job.epoch);
  if (job.lost > 0) writer.key("lost").number(job.lost);
  if (job.resubmit) writer.key("resubmit").boolean(true);
  if (job.cancel) writer.key("cancel").boolean(true);
  if (!job.worker_id.empty()) {
    writer.key("worker").begin_object().key("role").string(job.worker_role).key("id").string(job.worker_id);
    writer.end_object();
  }
  append_time(writer, "added_at", job.added_at);
  append_time(writer, "started_at", job.started_at);
  append_time(writer, "finished_at", job.finished_at);
  append_time(writer, "deadline", job.deadline);
  if (!job.progress.empty()) writer.key("progress").raw(job.progress);
  if (!job.last_error.empty()) writer.key("last_error").string(job.last_error);
  if (parts.history) writer.key("history").raw(*parts.history);
  if (parts.data) writer.key("data").raw(*parts.data);
  if (parts.result) writer.key("result").raw(*parts.result);
  writer.end_object();
  return out;
}

void return_to_queue(Job& job) {
  job.state = State::pending;
  job.lock.clear();
  job.worker_role.clear();
  job.worker_id.clear();
  job.cancel = false;
  job.deadline = 0;
  job.progress.clear();
}

void make_pending(Job& job, std::int64_t scheduled_at, std::int64_t now) {
  return_to_queue(job);
  job.scheduled_at = scheduled_at;
  // Jobs that run at once run in the order in which they were added.
  job.due_at = scheduled_at != 0 ? scheduled_at : now;
}

}  // namespace divan::jobs
