#include "sim/job_model.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "divan/jobs/schedule.h"

namespace divan::sim {

using jobs::State;

namespace {

// The first tick after both the time of the commit, which lies between two readings of its process's clock,
// and another time.
std::pair<std::int64_t, std::int64_t> ticks_after(const std::string& schedule, const Commit& commit,
                                                  std::int64_t tick) {
  const auto times = jobs::Schedule::of_json(schedule);
  return {times.next_after(std::max(commit.began_ms, tick)),
          times.next_after(std::max(commit.committed_ms, tick))};
}

}  // namespace

void JobModel::apply(const Step& step, const Commit& commit, const jobs::TypeSettings& settings,
                     std::optional<JobModel>& model) {
  using Kind = Step::Kind;
  switch (step.kind) {
    case Kind::add:
      // A new job is requested like one that has ended.
      if (!model) model.emplace().state = State::finished;
      model->ask(step, commit);
      break;
    case Kind::resubmit: model->ask(step, commit); break;
    case Kind::cancel:
      if (!has_ended(model->state)) model->next.reset();
      if (model->state == State::running) model->cancel = true;
      if (model->state == State::pending) model->state = State::cancelled;
      break;
    case Kind::remove:
    case Kind::clear_type: model.reset(); break;
    case Kind::update:
      if (step.data) model->data = *step.data;
      if (step.progress) model->progress = step.progress;
      break;
    case Kind::finish:
      if (step.data) model->data = *step.data;
      model->failures = model->lost = 0;
      model->result = step.result;
      model->run_ends(State::finished, commit);
      break;
    case Kind::fail: model->failed(commit, settings, step.delay); break;
    case Kind::release: model->taken_back(commit, false, settings, step.delay); break;
  }
}

// Of add() and resubmit(); only the former gives priority and data.
void JobModel::ask(const Step& step, const Commit& commit) {
  const bool adds = step.kind == Step::Kind::add;
  if (is_asked_for_again(step, commit)) return;
  const bool keeps_schedule = !step.schedule.empty() && step.schedule == schedule;
  // An add without a time leaves the time of a pending job, or of the next run, unless its schedule set it.
  const bool keeps_time = adds && step.scheduled_at == 0 && step.schedule.empty() && schedule.empty();
  if (adds) schedule = step.schedule;
  if (adds) limits = step.limits;
  if (state == State::running) {
    const bool keeps_next =
        next && !next->by_schedule && adds && step.scheduled_at == 0 && step.schedule.empty();
    if (!next || (!keeps_schedule && !keeps_next))
      next = Next{next ? next->data : std::nullopt, step.scheduled_at, !step.schedule.empty()};
    if (step.data) next->data = step.data;
    if (adds) priority = step.priority;
    return;
  }
  const bool pending = state == State::pending;
  if (!pending)
    *this = JobModel{.data = std::move(data),
                     .priority = priority,
                     .schedule = std::move(schedule),
                     .limits = std::move(limits)};
  if (step.data) {
    data = *step.data;
    next.reset();
  }
  if (adds) priority = step.priority;
  if (!step.schedule.empty()) {
    if (keeps_schedule && pending) return;
    std::tie(earliest, latest) = ticks_after(step.schedule, commit, 0);
    asked_for.reset();
    return;
  }
  if (!pending) {
    earliest = step.scheduled_at;
    latest = std::max(step.scheduled_at, commit.committed_ms);
    asked_for = step.scheduled_at;
  } else if (!keeps_time) {
    ask_for_another_time(step.scheduled_at, commit);
  }
}

// A time in the future replaces the job's time; one that has passed only makes it earlier.
void JobModel::ask_for_another_time(std::int64_t time, const Commit& commit) {
  const std::int64_t least = time == 0 ? commit.began_ms : time;
  const std::int64_t most = time == 0 ? commit.committed_ms : time;
  // It may have been delayed since the time was requested.
  if (asked_for == time && latest <= commit.began_ms) return;
  const bool has_passed = most <= commit.committed_ms;
  const bool may_be_ahead = time > commit.began_ms;
  earliest = has_passed ? std::min(earliest, least) : least;
  if (asked_for == time) {
    latest = std::max(most, std::min(latest, commit.committed_ms));
  } else {
    latest = may_be_ahead ? most : std::min(latest, most);
  }
  asked_for = time;
}

bool JobModel::is_asked_for_again(const Step& step, const Commit& commit) const {
  const bool adds = step.kind == Step::Kind::add;
  if (!adds && step.kind != Step::Kind::resubmit) return false;
  if (!step.schedule.empty()) {
    const bool same = schedule == step.schedule && priority == step.priority && limits == step.limits;
    if (has_ended(state)) return false;
    if (next && state == State::pending) return false;
    if (!next && cancel) return false;
    return same && step.data == (next ? next->data : data);
  }
  if (state != State::pending) return false;
  const bool no_time = adds && step.scheduled_at == 0;
  // At the requested time, whether it has passed or not.
  const bool as_asked_for =
      latest <= commit.began_ms || (earliest == step.scheduled_at && latest == earliest);
  if (!no_time && (asked_for != step.scheduled_at || !as_asked_for)) return false;
  return !adds || (schedule.empty() && limits == step.limits && !next && step.data == data &&
                   step.priority == priority);
}

void JobModel::accepted(std::int64_t at) {
  state = State::running;
  started_at = at;
  ++attempts;
  progress.reset();
}

bool JobModel::is_missed(std::int64_t now) const {
  if (schedule.empty() || attempts > 0 || tick == 0 || started_at >= tick) return false;
  const auto times = jobs::Schedule::of_json(schedule);
  return times.missed() == jobs::Missed::skip && times.next_after(tick) <= now;
}

void JobModel::wait_for_next_tick(const Commit& commit) {
  state = State::pending;
  std::tie(earliest, latest) = ticks_after(schedule, commit, tick);
  asked_for.reset();
  attempts = failures = lost = 0;
}

void JobModel::failed(const Commit& commit, const jobs::TypeSettings& of_type,
                      std::optional<std::int64_t> delay) {
  const auto settings = jobs::with_limits(of_type, limits);
  ++failures;
  // The pause doubles from the minimum to the maximum, less up to a quarter.
  Duration pause = settings.backoff_min;
  for (std::int64_t i = 1; i < failures && pause < settings.backoff_max; ++i) pause *= 2;
  pause = std::min(pause, settings.backoff_max);
  const auto ms = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  };
  if (cancel || delay == -1 || failures >= settings.max_attempts) return run_ends(State::failed, commit);
  state = State::pending;
  earliest = commit.began_ms + delay.value_or(ms(pause * 3 / 4));
  latest = commit.committed_ms + delay.value_or(ms(pause));
  asked_for.reset();
}

void JobModel::taken_back(const Commit& commit, bool is_lost, const jobs::TypeSettings& of_type,
                          std::optional<std::int64_t> delay) {
  const auto most_lost = jobs::with_limits(of_type, limits).max_lost;
  if (is_lost) ++lost;
  if (cancel) return run_ends(State::cancelled, commit);
  if (is_lost && most_lost && lost >= *most_lost) return run_ends(State::failed, commit);
  state = State::pending;
  if (!is_lost) --attempts;
  if (delay) {
    earliest = commit.began_ms + *delay;
    latest = commit.committed_ms + *delay;
    asked_for.reset();
  }
  // In its former position; after a lost attempt behind the jobs that are due.
  if (is_lost) latest = std::max(latest, commit.committed_ms);
}

void JobModel::run_ends(State state_then, const Commit& commit) {
  const bool again = next.has_value();
  const bool by_schedule = again ? next->by_schedule : !schedule.empty() && !cancel;
  if (again) {
    if (next->data) data = *std::move(next->data);
    earliest = next->scheduled_at;
    latest = std::max(next->scheduled_at, commit.committed_ms);
    asked_for = next->scheduled_at;
    failures = lost = 0;
    if (!schedule.empty()) attempts = 0;
    next.reset();
  }
  state = again ? State::pending : cancel ? State::cancelled : state_then;
  if (by_schedule) wait_for_next_tick(commit);
  cancel = false;
}

}  // namespace divan::sim
