#include "sim/job_model.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "divan/jobs/schedule.h"

namespace divan::sim {

using jobs::State;

namespace {

// The first tick after both: the commit's time, which lies between what its process's clock showed, and
// another.
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
      if (!model) model.emplace();
      model->ask(step, commit);
      break;
    case Kind::resubmit: model->ask(step, commit); break;
    case Kind::cancel:
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
      model->failures = 0;
      model->run_ends(State::finished, commit, 0, 0);
      break;
    case Kind::fail: model->failed(commit, settings); break;
    case Kind::release: model->taken_back(commit); break;
  }
}

// Of add() and resubmit(); only the former gives priority and data.
void JobModel::ask(const Step& step, const Commit& commit) {
  const bool adds = step.kind == Step::Kind::add;
  if (is_asked_for_again(step)) return;
  const bool keeps_time = !step.schedule.empty() && step.schedule == schedule;
  if (adds) schedule = step.schedule;
  if (state == State::running) {
    const std::string& kept = next ? next->data : data;
    next = Next{step.data.value_or(kept), step.scheduled_at};
    if (!step.schedule.empty()) next->tick = ticks_after(step.schedule, commit, 0);
    if (adds) priority = step.priority;
    return;
  }
  // One that was pending by itself may have been so at this time already; then it stays as it is.
  const std::int64_t before = state == State::pending && !asked_for ? latest : 0;
  const bool pending = state == State::pending;
  if (has_ended(state))
    *this = JobModel{.data = std::move(data), .priority = priority, .schedule = std::move(schedule)};
  if (step.data) data = *step.data;
  if (adds) priority = step.priority;
  if (!step.schedule.empty()) {
    if (keeps_time && pending) return;
    std::tie(earliest, latest) = ticks_after(step.schedule, commit, 0);
    asked_for.reset();
    return;
  }
  earliest = step.scheduled_at;
  latest = std::max({before, step.scheduled_at, commit.committed_ms});
  asked_for = step.scheduled_at;
}

bool JobModel::is_asked_for_again(const Step& step) const {
  if (step.kind != Step::Kind::add && step.kind != Step::Kind::resubmit) return false;
  if (!step.schedule.empty()) {
    const bool same = schedule == step.schedule && priority == step.priority;
    if (has_ended(state)) return false;
    return same && step.data == (next ? next->data : data);
  }
  if (state != State::pending || asked_for != step.scheduled_at) return false;
  if (step.kind == Step::Kind::add && !schedule.empty()) return false;
  return step.kind == Step::Kind::resubmit || (step.data == data && step.priority == priority);
}

void JobModel::accepted() {
  state = State::running;
  ++attempts;
  progress.reset();
}

bool JobModel::is_missed(std::int64_t now) const {
  if (schedule.empty() || attempts > 0 || tick == 0) return false;
  const auto times = jobs::Schedule::of_json(schedule);
  return times.missed() == jobs::Missed::skip && times.next_after(tick) <= now;
}

void JobModel::wait_for_next_tick(const Commit& commit) {
  state = State::pending;
  std::tie(earliest, latest) = ticks_after(schedule, commit, tick);
  asked_for.reset();
  attempts = failures = 0;
}

void JobModel::failed(const Commit& commit, const jobs::TypeSettings& settings) {
  ++failures;
  // The pause doubles from the lowest to the highest, less up to a quarter.
  Duration pause = settings.backoff_min;
  for (std::int64_t i = 1; i < failures && pause < settings.backoff_max; ++i) pause *= 2;
  pause = std::min(pause, settings.backoff_max);
  const auto ms = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  };
  const bool last = failures >= settings.max_attempts;
  // One that is asked for again gets another chance after its last one.
  run_ends(last ? State::failed : State::pending, commit, ms(pause * 3 / 4), ms(pause));
}

void JobModel::taken_back(const Commit& commit) { run_ends(State::pending, commit, 0, 0); }

void JobModel::run_ends(State otherwise, const Commit& commit, std::int64_t shortest, std::int64_t longest) {
  const bool again = next.has_value();
  if (!again && !cancel && otherwise != State::pending && !schedule.empty())
    return wait_for_next_tick(commit);
  state = again ? State::pending : cancel ? State::cancelled : otherwise;
  earliest = shortest > 0 ? commit.began_ms + shortest : 0;
  latest = commit.committed_ms + longest;
  // What nobody ended is due for its tick, if it was accepted before that.
  if (!again && !schedule.empty()) latest = std::max(latest, tick);
  asked_for.reset();
  if (again) {
    data = std::move(next->data);
    earliest = std::max(earliest, next->scheduled_at);
    latest = std::max(latest, next->scheduled_at);
    if (longest == 0) asked_for = next->scheduled_at;
    if (!schedule.empty()) attempts = failures = 0;
    next.reset();
  }
  cancel = false;
}

}  // namespace divan::sim
