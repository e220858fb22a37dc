#include "sim/job_invariants.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/jobs/rows.h"

namespace divan::sim {
namespace {

using jobs::Job;
using jobs::JobKey;
using jobs::State;
using kv::tuple::Packer;
using kv::tuple::Reader;

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// A worker's batch of running jobs.
using BatchName = std::tuple<std::string, std::string, std::int64_t>;
BatchName batch_of(const Job& job) { return {job.worker_role, job.worker_id, job.batch}; }

// Returns true if the job's name is in its batch.
bool is_named_in_batch(const Job& job, const Rows& rows) {
  const std::string key =
      JobKey("batch").string(job.worker_role).string(job.worker_id).integer(job.batch).key();
  const auto row = rows.find(key);
  if (row == rows.end()) return false;
  for (Reader reader(row->second); !reader.at_end();) {
    const auto type = reader.take_string().value();
    if (reader.take_string().value() == job.id && type == job.type) return true;
  }
  return false;
}

std::string name_of(const std::optional<Job>& job) {
  return job ? std::string(jobs::state_name(job->state)) : "gone";
}

}  // namespace

void JobInvariants::fail(const Name& name, const std::string& what) {
  world_.fail(fmt::format("Job {}/{}: {}", name.first, name.second, what));
}

JobInvariants::Touched JobInvariants::collect(const Commit& commit) {
  Touched touched;
  for (const auto& change : commit.changes) {
    Reader reader(change.key);
    const auto first = reader.take_string();
    if (first == "workers") {
      auto role = reader.take_string();
      const auto kind = reader.take_string();
      if (kind == "w") touched.workers.emplace(*role, *reader.take_string());
      continue;
    }
    const auto entry = parse_job_row(change.key);
    // Jobs that build indexes are not modelled: ken and the builders do not note what they do.
    if (!entry || (entry->kind != "left" && !types_.contains(entry->job.first))) continue;
    if (entry->kind == "type") touched.types.insert(entry->job.first);
    if (entry->kind == "job") {
      jobs_[entry->job].changed = commit.version;
      jobs_[entry->job].changed_at = world_.now();
    }
    // Of a worker: its key has a role and an id in the place of a type and an id.
    if (entry->kind == "left" && change.after) left_[entry->job] = commit.version;
    if (entry->kind == "left" && !change.after) touched.not_left.insert(entry->job);
    if (entry->kind == "wake") touched.woken.insert(entry->job.first);
    const bool is_entry =
        entry->kind == "pend" || entry->kind == "act" || entry->kind == "end" || entry->kind == "by_worker";
    if (entry->kind == "deadline") {
      auto& deadlines = jobs_[entry->job].deadlines;
      if (change.after) deadlines.insert(change.key);
      if (!change.after) deadlines.erase(change.key);
      touched.jobs.insert(entry->job);
    }
    if (is_entry) {
      auto& entries = jobs_[entry->job].entries;
      if (change.after) entries.insert(change.key);
      if (!change.after) entries.erase(change.key);
      if (entry->kind == "pend" && change.after && !change.before) touched.pending.insert(entry->job);
    }
    if (is_entry || entry->kind == "job" || entry->kind == "data" || entry->kind == "next" ||
        entry->kind == "result") {
      touched.jobs.insert(entry->job);
    }
  }
  return touched;
}

void JobInvariants::check(const Commit& commit, const Rows& rows) {
  Touched touched = collect(commit);
  std::map<Name, std::vector<Step>> steps;
  for (auto& step : steps_of(world_, commit)) {
    if (step.kind == Step::Kind::clear_type) {
      clear_type(step.type, touched, steps);
      continue;
    }
    touched.jobs.emplace(step.type, step.id);
    steps[{step.type, step.id}].push_back(std::move(step));
  }
  std::set<std::string> types;
  std::vector<Job> accepted;
  bool batches = false;
  for (const auto& name : touched.jobs) {
    Seen& seen = jobs_[name];
    const auto before = seen.job;
    check_job(name, steps[name], commit, touched, rows);
    types.insert(name.first);
    batches |= (before && jobs::is_in_batch(*before)) || (seen.job && jobs::is_in_batch(*seen.job));
    const bool starts =
        before && before->state == State::pending && seen.job && seen.job->state == State::running;
    if (starts) accepted.push_back(*before);
    if (!before && seen.job && seen.job->state == State::running) {
      world_.count("accepted by the transaction that added it");
      accepted.push_back(*seen.job);
    }
  }
  if (batches) check_batches(rows);
  check_order(accepted, commit);
  check_limit(accepted);
  for (const auto& type : types) check_counts(type, rows);
  for (const auto& type : touched.types) {
    types_[type] = jobs::parse_settings(rows.at(JobKey("type").string(type).key()));
  }
  for (const auto& name : touched.pending) {
    if (!touched.woken.contains(name.first)) fail(name, "it became pending and no acceptor was woken.");
  }
  check_worker_jobs(touched, rows);
}

void JobInvariants::check_batches(const Rows& rows) {
  world_.count("changed a batch of a worker's jobs");
  std::map<BatchName, std::int64_t> running;
  for (const auto& [name, seen] : jobs_) {
    if (seen.job && jobs::is_in_batch(*seen.job)) ++running[batch_of(*seen.job)];
  }
  for (const auto& [batch, jobs] : running) {
    const auto& [role, worker, number] = batch;
    const auto row =
        rows.find(JobKey("batch").string(role).string(worker).integer(number).string("running").key());
    if (row == rows.end() || kv::decode_counter(std::string_view(row->second)) != jobs)
      world_.fail(fmt::format("Batch {} of worker {}/{} has {} running jobs, and its counter differs.",
                              number, role, worker, jobs));
  }
}

void JobInvariants::check_worker_jobs(const Touched& touched, const Rows& rows) {
  for (const auto& worker : touched.not_left) {
    const auto left = left_.extract(worker);
    for (const auto& [name, seen] : jobs_) {
      const bool has_worker_entry = seen.job && seen.job->state == State::running &&
                                    Name(seen.job->worker_role, seen.job->worker_id) == worker;
      if (has_worker_entry && seen.job->epoch < left.mapped())
        fail(name, "its worker has ended, and it was not reclaimed.");
    }
  }
  for (const auto& worker : touched.workers) {
    const auto& [role, id] = worker;
    std::string row;
    Packer(row).string("workers").string(role).string("w").string(id);
    const JobKey worker_entry = JobKey("by_worker").string(role).string(id);
    const auto entry = rows.lower_bound(worker_entry.key());
    const bool has_job_in_batch = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
      const auto& other = job.second.job;
      return other && jobs::is_in_batch(*other) && Name(other->worker_role, other->worker_id) == worker;
    });
    const bool has_worker_entry =
        has_job_in_batch || (entry != rows.end() && entry->first.starts_with(worker_entry.key()));
    if (has_worker_entry && !rows.contains(row) && !left_.contains(worker)) {
      world_.fail(fmt::format("Worker {}/{} has ended, but a job still has it as its worker.", role, id));
    }
    if (has_worker_entry && !rows.contains(row)) world_.count("jobs left by a worker that ended");
  }
}

void JobInvariants::clear_type(const std::string& type, Touched& touched,
                               std::map<Name, std::vector<Step>>& steps) {
  for (const auto& [name, seen] : jobs_) {
    if (name.first != type || !seen.model) continue;
    touched.jobs.insert(name);
    steps[name].push_back({.kind = Step::Kind::remove, .type = type, .id = name.second});
  }
}

void JobInvariants::check_job(const Name& name, const std::vector<Step>& steps, const Commit& commit,
                              const Touched& touched, const Rows& rows) {
  Seen& seen = jobs_[name];
  const auto now = find_job(rows, name);
  if (seen.job) --counts_[name.first][seen.job->state];
  if (now) ++counts_[name.first][now->state];
  world_.trace(fmt::format("  {}/{} {} -> {}{}", name.first, name.second, name_of(seen.job), name_of(now),
                           steps.empty() ? "" : fmt::format(" by {}", kind_name(steps[0].kind))));
  for (const auto& step : steps) apply(name, step, commit, seen);
  follow(name, seen, now, steps.empty(), commit, touched);
  learn_ticks(name, seen, now);
  compare(name, seen, now, rows);
  check_times(name, seen, now, commit);
  check_attempt(name, seen, now);
  check_entries(name, seen, now, rows);
  const bool sign = now && now->state == State::running && now->worker_id.empty() &&
                    (!seen.job || seen.job->activity != now->activity);
  if (sign) {
    seen.alive_at = world_.now();
    seen.alive_limits = now->limits;
  }
  const auto effects = rows.find(effect_key(name.first, name.second));
  if ((effects == rows.end() ? 0 : kv::decode_counter(std::string_view(effects->second))) != seen.finishes) {
    fail(name, "its effect was not written once for each run.");
  }
  seen.job = now;
}

void JobInvariants::apply(const Name& name, const Step& step, const Commit& commit, Seen& seen) {
  auto& model = seen.model;
  using Kind = Step::Kind;
  const bool runs = model && model->state == State::running;
  const bool by_attempt = step.kind >= Kind::update;
  if (by_attempt && (!runs || seen.job->lock != step.lock)) {
    return fail(name,
                fmt::format("{} by an attempt that has lost it ({}).", kind_name(step.kind), step.lock));
  }
  if (!model && step.kind != Kind::add) {
    return fail(name, fmt::format("{} was done and it is not there.", kind_name(step.kind)));
  }
  if (model && model->is_asked_for_again(step, commit)) {
    world_.count("asked for again as it is");
    if (seen.changed == commit.version)
      fail(name, "it was changed by a step that requests the state it had.");
  }
  if (runs && (step.kind == Kind::add || step.kind == Kind::resubmit))
    world_.count("resubmitted while it runs");
  if (runs && step.kind == Kind::remove) world_.count("removed while it runs");
  if (step.kind == Kind::finish) {
    ++seen.finishes;
    check_tick(name, seen);
  }
  // An explicit request may name a tick that was done.
  if (!by_attempt) seen.finished_tick = 0;
  if (step.kind == Kind::finish && model->next) world_.count("runs again after a resubmit");
  JobModel::apply(step, commit, types_.at(step.type), model);
  if (by_attempt && model->state == State::cancelled) world_.count("cancelled while it ran");
}

void JobInvariants::follow(const Name& name, Seen& seen, const std::optional<Job>& now, bool by_itself,
                           const Commit& commit, const Touched& touched) {
  auto& model = seen.model;
  if (!model) return;
  if (!now) {
    if (has_ended(model->state)) follow_pruning(name, seen, commit);
    return;
  }
  if (model->state == State::pending && now->state == State::running) {
    if (types_.at(name.first).paused) fail(name, "it was accepted though its type is paused.");
    if (commit.committed_ms < model->earliest) fail(name, "it was accepted before it was due.");
    if (model->is_missed(commit.began_ms)) fail(name, "it was accepted though its tick was missed.");
    if (model->asked_for.value_or(0) > 0) world_.count("accepted at the time that was asked for");
    world_.count(now->worker_id.empty() ? "accepted without a worker" : "accepted with a worker");
    model->accepted(now->started_at);
  } else if (model->state == State::running && now->state == State::running && seen.job &&
             seen.job->lock != now->lock) {
    fail(name, "a second attempt has it while the first still does.");
  } else if (model->state == State::running && now->state != State::running) {
    follow_taking_back(name, seen, now, commit, touched);
  } else if (by_itself && model->state == State::pending && now->state == State::pending && seen.job &&
             seen.job->scheduled_at != now->scheduled_at) {
    follow_skipping(name, seen, commit);
  }
}

void JobInvariants::follow_skipping(const Name& name, Seen& seen, const Commit& commit) {
  if (!seen.model->is_missed(commit.committed_ms)) fail(name, "it was skipped and nothing was missed.");
  world_.count("skipped a missed tick");
  seen.model->wait_for_next_tick(commit);
}

// It was finished for the tick that it has.
void JobInvariants::check_tick(const Name& name, Seen& seen) {
  seen.finished_at = world_.now();
  // It may have got its schedule while it ran.
  if (seen.model->next) seen.finished_tick = 0;
  if (seen.model->next || seen.job->schedule.empty() || seen.job->scheduled_at == 0) return;
  world_.count("finished for a tick");
  if (seen.job->scheduled_at <= seen.finished_tick) fail(name, "it was finished twice for one tick.");
  seen.finished_tick = seen.job->scheduled_at;
}

// Takes times that depend on the moment of a commit from the store.
void JobInvariants::learn_ticks(const Name& name, Seen& seen, const std::optional<Job>& now) {
  if (!now || !seen.model) return;
  if (now->state == State::pending) seen.model->tick = now->scheduled_at;
  if (now->schedule != seen.model->schedule) fail(name, "its schedule is not the requested one.");
}

void JobInvariants::follow_pruning(const Name& name, Seen& seen, const Commit& commit) {
  if (!seen.job || commit.committed_ms <
                       seen.job->finished_at + in_ms(types_.at(name.first).retention_of(seen.job->state))) {
    fail(name, "it was pruned before its retention was over.");
  }
  world_.count("pruned");
  seen.model.reset();
}

bool JobInvariants::is_overdue(const Seen& seen, const std::optional<Job>& now, const Commit& commit) const {
  const Job& before = *seen.job;
  if (before.deadline == 0 || commit.committed_ms < before.deadline || !now) return false;
  constexpr std::string_view kError = "The attempt ran longer than its `max_runtime`";
  return now->last_error.starts_with(kError) && now->lost != before.lost + 1;
}

void JobInvariants::follow_taking_back(const Name& name, Seen& seen, const std::optional<Job>& now,
                                       const Commit& commit, const Touched& touched) {
  const Job& before = *seen.job;
  if (is_overdue(seen, now, commit)) {
    world_.count("ended at its deadline");
    return seen.model->failed(commit, types_.at(name.first));
  }
  if (!before.worker_id.empty()) {
    const Name worker{before.worker_role, before.worker_id};
    const auto left = left_.find(worker);
    if (touched.workers.contains(worker)) {
      world_.count("reclaimed with its worker");
    } else if (left != left_.end() && before.epoch < left->second) {
      world_.count("reclaimed after its worker");
    } else {
      fail(name, "taken from a worker that is still there.");
    }
  } else {
    if (world_.now() - seen.alive_at < jobs::with_limits(types_.at(name.first), seen.alive_limits).timeout) {
      fail(name, "reclaimed before its timeout.");
    }
    // A pause of the machine may count only for the wait for the next poll, which it interrupted.
    const auto paused = world_.paused_since(seen.alive_at);
    const Duration of_type = types_.at(name.first).timeout;
    const Duration timeout = jobs::with_limits(types_.at(name.first), seen.alive_limits).timeout;
    if (world_.now() - seen.alive_at - paused.duration <
        timeout - std::max(timeout, of_type) / 4 * paused.times)
      fail(name, "reclaimed because the machine was paused.");
    if (paused.times > 0) world_.count("reclaimed from silence after a pause");
    world_.count("reclaimed from silence");
  }
  if (seen.model->lost + 1 >=
      jobs::with_limits(types_.at(name.first), seen.model->limits).max_lost.value_or(INT64_MAX))
    world_.count("failed, being lost too often");
  seen.model->taken_back(commit, true, types_.at(name.first));
}

void JobInvariants::compare(const Name& name, const Seen& seen, const std::optional<Job>& now,
                            const Rows& rows) {
  if (seen.model.has_value() != now.has_value()) {
    return fail(name, now ? "it exists and should not." : "it does not exist and should.");
  }
  if (!now) return check_nothing_left(name, seen, rows);
  const JobModel& model = *seen.model;
  if (model.state != now->state) {
    return fail(name, fmt::format("it is {} and should be {}.", jobs::state_name(now->state),
                                  jobs::state_name(model.state)));
  }
  const auto data_of = [&](std::string_view kind, const std::string& in_header) {
    const auto in_rows = data_under(rows, kind, name);
    if (in_rows && !in_header.empty()) fail(name, "it has data in its header and in rows.");
    return in_rows.value_or(fingerprint(in_header.empty() ? "{}" : in_header));
  };
  const std::string_view own = now->swapped ? "next" : "data";
  const std::string_view others = now->swapped ? "data" : "next";
  if (data_of(own, now->data) != model.data) fail(name, "its data are not those that were last written.");
  const bool has_next_data = model.next && model.next->data;
  const bool same_next = has_next_data ? data_of(others, now->next_data) == model.next->data
                                       : !data_under(rows, others, name) && now->next_data.empty() &&
                                             now->next_chunks == (model.next ? jobs::kSameData : 0);
  const std::int64_t next_at = !model.next               ? 0
                               : model.next->by_schedule ? jobs::kNextTick
                                                         : model.next->scheduled_at;
  if (!same_next || now->resubmit != model.next.has_value() || now->resubmit_at != next_at) {
    fail(name, "its next run is not the requested one.");
  }
  if (data_under(rows, "result", name) != model.result)
    fail(name, "its result is not what its last run left.");
  if (now->lost != model.lost) fail(name, "its lost attempts are not counted.");
  if (now->limits != model.limits) fail(name, "its own settings are not the requested ones.");
  if (now->failures != model.failures) fail(name, "its failures are not counted.");
  if (now->attempt != model.attempts) fail(name, "its attempts are not counted.");
  if (now->cancel != model.cancel) fail(name, "its cancel flag is not the requested one.");
  if (model.state == State::running && model.progress && now->progress != model.progress) {
    fail(name, "its progress is not what its attempt last reported.");
  }
  if (model.state == State::pending) compare_pending(name, seen, *now);
}

void JobInvariants::compare_pending(const Name& name, const Seen& seen, const Job& now) {
  const JobModel& model = *seen.model;
  if (now.due_at < model.earliest || now.due_at > model.latest) {
    fail(name, fmt::format("it is due at {}, which should lie between {} and {}.", now.due_at, model.earliest,
                           model.latest));
  }
  if (now.priority != model.priority) fail(name, "its priority is not the requested one.");
  if (model.asked_for && now.scheduled_at != model.asked_for) {
    fail(name, "its time is not the requested one.");
  }
}

void JobInvariants::check_nothing_left(const Name& name, const Seen& seen, const Rows& rows) {
  if (data_under(rows, "result", name)) fail(name, "it is gone, and its result is left.");
  if (!seen.deadlines.empty()) fail(name, "it is gone, and an entry of its deadline is left.");
  if (!seen.entries.empty()) fail(name, "it is gone, and an entry of it is left.");
  if (data_under(rows, "hist", name)) fail(name, "it is gone, and its history is left.");
  if (data_under(rows, "data", name) || data_under(rows, "next", name)) {
    fail(name, "it is gone, and data of it are left.");
  }
}

// The times of a job are those of the clocks of the processes that changed it.
void JobInvariants::check_times(const Name& name, const Seen& seen, const std::optional<Job>& now,
                                const Commit& commit) {
  if (!now) return;
  const auto check = [&](std::string_view what, bool is_new, std::int64_t time, std::int64_t before) {
    const bool right = is_new ? time >= commit.began_ms && time <= commit.committed_ms : time == before;
    if (!right) fail(name, fmt::format("it shows {} as the time at which it {}.", time, what));
  };
  const Job before = seen.job.value_or(Job());
  if (!seen.job) check("was added", true, now->added_at, 0);
  if (now->state == State::running)
    check("was started", before.lock != now->lock, now->started_at, before.started_at);
  if (has_ended(now->state)) {
    check("ended", !seen.job || !has_ended(before.state), now->finished_at, before.finished_at);
  }
}

void JobInvariants::check_attempt(const Name& name, Seen& seen, const std::optional<Job>& now) {
  if (!now || now->state != State::running) {
    if (now && !now->lock.empty()) fail(name, "it does not run and has a lock.");
    return;
  }
  const bool same = seen.job && seen.job->state == State::running && seen.job->lock == now->lock;
  if (same) {
    if (seen.job->epoch != now->epoch) fail(name, "the epoch of an attempt has changed.");
    return;
  }
  if (now->lock.empty()) fail(name, "it runs without a lock.");
  if (!seen.locks.insert(now->lock).second) fail(name, "a lock is used again.");
  if (now->epoch <= seen.epoch) fail(name, "the epoch of a new attempt is not above the last one's.");
  seen.epoch = now->epoch;
}

void JobInvariants::check_entries(const Name& name, const Seen& seen, const std::optional<Job>& now,
                                  const Rows& rows) {
  if (!now) return;
  if (now->state == State::running && now->worker_id.empty() && !now->activity) {
    return fail(name, "it runs without a worker and has no entry of activity.");
  }
  const std::string expected = entry_of(*now);
  const bool is_listed =
      jobs::is_in_batch(*now) ? is_named_in_batch(*now, rows) : seen.entries.contains(expected);
  if (!is_listed) {
    return fail(name,
                fmt::format("it is {} and lacks the entry of that state.", jobs::state_name(now->state)));
  }
  if (seen.entries.size() != (jobs::is_in_batch(*now) ? 0 : 1)) fail(name, "it has more than one entry.");
  if (now->state == State::pending &&
      rows.at(expected) != rows.at(JobKey("job").string(name.first).string(name.second).key())) {
    fail(name, "the copy of its header in its entry differs.");
  }
  std::set<std::string> deadlines;
  if (now->state == State::running && now->deadline != 0) deadlines.insert(deadline_entry_of(*now));
  if (seen.deadlines != deadlines) fail(name, "its deadline lacks its one entry.");
  const auto max_runtime = jobs::with_limits(types_.at(name.first), now->limits).max_runtime;
  const bool begins = now->state == State::running && (!seen.job || seen.job->lock != now->lock);
  if (begins && now->deadline != (max_runtime ? now->started_at + in_ms(*max_runtime) : 0))
    fail(name, "its deadline is not that of its settings.");
  if (now->state == State::running && !now->worker_id.empty()) {
    std::string worker;
    Packer(worker).string("workers").string(now->worker_role).string("w").string(now->worker_id);
    const auto left = left_.find({now->worker_role, now->worker_id});
    const bool is_left = left != left_.end() && now->epoch < left->second;
    if (!rows.contains(worker) && !is_left) fail(name, "its worker is not registered.");
  }
}

// Over all types together: acceptors accept jobs of any of them.
void JobInvariants::check_order(const std::vector<Job>& accepted, const Commit& commit) {
  for (const auto& job : accepted) {
    for (const auto& [name, left] : jobs_) {
      if (!left.job || left.job->state != State::pending) continue;
      const auto& settings = types_.at(name.first);
      // Another type may have been paused, or full.
      if (name.first != job.type && (settings.paused || settings.max_running)) continue;
      const bool was_seen = left.changed_at < commit.began && left.job->due_at <= commit.began_ms;
      if (!was_seen) continue;
      world_.count(name.first == job.type ? "left in its place by an accept"
                                          : "left in its place by an accept of another type");
      if (std::pair(left.job->priority, left.job->due_at) < std::pair(job.priority, job.due_at)) {
        fail(name, fmt::format("{} was accepted before it, although it was first in the queue.", job.id));
      }
    }
  }
}

void JobInvariants::check_limit(const std::vector<Job>& accepted) {
  for (const auto& job : accepted) {
    const auto most = types_.at(job.type).max_running;
    if (!most) continue;
    const auto running = counts_[job.type][State::running];
    if (running == *most) world_.count("accepted where no more may run");
    if (running > *most)
      fail({job.type, job.id}, fmt::format("it was accepted, and {} run where {} may.", running, *most));
  }
}

void JobInvariants::check_given(const Job& given, std::string_view data) {
  const Name name{given.type, given.id};
  const Seen& seen = jobs_[name];
  // It may have lost the job by now.
  if (!seen.job || seen.job->lock != given.lock) return;
  if (fingerprint(data) != seen.model->data) fail(name, "it was given to its attempt with other data.");
  if (given.attempt != seen.job->attempt || given.epoch != seen.job->epoch) {
    fail(name, "it was given to its attempt with another number.");
  }
}

void JobInvariants::check_counts(const std::string& type, const Rows& rows) {
  for (const State state : jobs::kStates) {
    const auto row = rows.find(jobs::count_key(type, state));
    const std::int64_t counted = row == rows.end() ? 0 : kv::decode_counter(std::string_view(row->second));
    if (counted != counts_[type][state]) {
      world_.fail(fmt::format("Type {}: {} jobs are {}, and the store counts {}.", type, counts_[type][state],
                              jobs::state_name(state), counted));
    }
  }
}

std::optional<JobInvariants::Name> JobInvariants::kept_too_long(std::int64_t wall_ms) const {
  for (const auto& [name, seen] : jobs_) {
    if (seen.job && has_ended(seen.job->state) &&
        seen.job->finished_at + in_ms(types_.at(name.first).retention_of(seen.job->state)) < wall_ms) {
      return name;
    }
  }
  return std::nullopt;
}

std::vector<Job> JobInvariants::open() const {
  std::vector<Job> open;
  for (const auto& [name, seen] : jobs_) {
    if (!seen.job || has_ended(seen.job->state)) continue;
    const bool waits_for_tick = seen.job->state == State::pending && !seen.job->schedule.empty();
    if (!waits_for_tick) open.push_back(*seen.job);
  }
  return open;
}

std::optional<JobInvariants::Name> JobInvariants::stuck_since(MonotonicTime since) const {
  for (const auto& [name, seen] : jobs_) {
    if (seen.job && !has_ended(seen.job->state) && !seen.job->schedule.empty() && seen.finished_at < since)
      return name;
  }
  return std::nullopt;
}

bool JobInvariants::is_there(const Name& name) const {
  const auto seen = jobs_.find(name);
  return seen != jobs_.end() && seen->second.job.has_value();
}

kv::Version JobInvariants::last_change(const Name& name) const {
  const auto seen = jobs_.find(name);
  return seen == jobs_.end() ? 0 : seen->second.changed;
}

}  // namespace divan::sim
