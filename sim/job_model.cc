#include "sim/job_model.h"

#include <algorithm>
#include <chrono>

namespace divan::sim {

using jobs::State;

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
  if (state == State::running) {
    const std::string& kept = next ? next->data : data;
    next = Next{step.data.value_or(kept), step.scheduled_at};
    if (adds) priority = step.priority;
    return;
  }
  if (is_asked_for_again(step)) return;
  // One that was pending by itself may have been so at this time already; then it stays as it is.
  const std::int64_t before = state == State::pending && !asked_for ? latest : 0;
  if (has_ended(state)) *this = JobModel{.data = std::move(data), .priority = priority};
  if (step.data) data = *step.data;
  if (adds) priority = step.priority;
  earliest = step.scheduled_at;
  latest = std::max({before, step.scheduled_at, commit.committed_ms});
  asked_for = step.scheduled_at;
}

bool JobModel::is_asked_for_again(const Step& step) const {
  if (step.kind != Step::Kind::add && step.kind != Step::Kind::resubmit) return false;
  if (state != State::pending || asked_for != step.scheduled_at) return false;
  return step.kind == Step::Kind::resubmit || (step.data == data && step.priority == priority);
}

void JobModel::accepted() {
  state = State::running;
  ++attempts;
  progress.reset();
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
  state = again ? State::pending : cancel ? State::cancelled : otherwise;
  earliest = shortest > 0 ? commit.began_ms + shortest : 0;
  latest = commit.committed_ms + longest;
  asked_for.reset();
  if (again) {
    data = std::move(next->data);
    earliest = std::max(earliest, next->scheduled_at);
    latest = std::max(latest, next->scheduled_at);
    if (longest == 0) asked_for = next->scheduled_at;
    next.reset();
  }
  cancel = false;
}

}  // namespace divan::sim
