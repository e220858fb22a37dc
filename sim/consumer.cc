#include "sim/consumer.h"

#include <fmt/core.h>

namespace divan::sim {

using jobs::AcceptedJob;
using std::chrono::milliseconds;
using std::chrono::seconds;

void Consumer::leave() {
  leaving_ = true;
  acceptor_.interrupt();
}

void Consumer::work(const std::function<std::optional<workers::WorkerRef>()>& worker) {
  while (!leaving_) {
    const auto ref = happens(rng_, base_.cluster.plan.with_worker) ? worker() : std::nullopt;
    const auto accepted = accept(ref);
    // Jobs that wait for their turn are held, too.
    struct Held {
      ~Held() {
        for (const auto& job : jobs) cluster.held.erase(job.job.lock);
      }
      Cluster& cluster;
      const std::vector<AcceptedJob>& jobs;
    } held{base_.cluster, accepted};
    for (const auto& job : accepted) {
      base_.cluster.held.insert(job.job.lock);
      base_.cluster.jobs.check_given(job.job, job.data);
    }
    for (const auto& job : accepted) attempt(job);
  }
}

void Consumer::add_job(const std::string& type) {
  const auto poll = acceptor_.poll_for_add(type);
  if (!poll) {
    base_.add_job(type);
    return;
  }
  std::exception_ptr failure;
  std::exception_ptr crash;
  try {
    const auto added = base_.add_job(type, [&](kv::Transaction& tx) { acceptor_.run_poll(*poll, tx); });
    if (!added) failure = std::make_exception_ptr(kv::Error(kv::ErrorCode::transaction_timed_out));
  } catch (...) { failure = crash = std::current_exception(); }
  const bool again = acceptor_.end_add_poll(*poll, failure);
  if (crash) std::rethrow_exception(crash);
  if (again) base_.add_job(type);
}

std::vector<AcceptedJob> Consumer::accept(const std::optional<workers::WorkerRef>& worker) {
  jobs::AcceptOptions options;
  options.limit = base_.cluster.quiet ? 1 : 1 + rng_.below(3);
  options.worker = worker;
  if (worker && rng_.below(4) == 0) options.worker->incarnation.clear();
  const auto deadline = base_.process.clock->now() + between(rng_, seconds(1), seconds(20));
  try {
    return acceptor_.accept(base_.cluster.plan.types, options, deadline);
  } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
    base_.check_is("not_found", error);
    world_.count("accept: not a worker any more");
    world_.pause(milliseconds(100));
  }
  return {};
}

void Consumer::attempt(const AcceptedJob& job) {
  const Plan& plan = base_.cluster.plan;
  const bool quiet = base_.cluster.quiet;
  const Duration timeout = jobs::with_limits(plan.settings.at(job.job.type), job.job.limits).timeout;
  world_.trace(fmt::format("works on {}/{} {}", job.job.type, job.job.id, job.job.lock));
  const bool alone = job.job.worker_id.empty();
  bool cancel = false;
  for (std::uint64_t i = 0, updates = quiet ? 0 : rng_.below(4);
       i < updates && !cancel && !base_.cluster.quiet; ++i) {
    const bool late = happens(rng_, plan.late);
    world_.pause(late ? between(rng_, timeout, timeout * 3) : base_.pause_up_to(timeout / 2));
    if (update(job, cancel)) return;
  }
  world_.pause(base_.pause_up_to(quiet ? Duration(milliseconds(100)) : timeout / 2));
  if (!quiet && alone && happens(rng_, plan.forget)) {
    world_.count("forgotten by its attempt");
    return;
  }
  if (!quiet && happens(rng_, plan.failing)) return end(job, Step::Kind::fail);
  if (!quiet && rng_.below(20) == 0) return end(job, Step::Kind::release);
  end(job, Step::Kind::finish);
}

std::string Consumer::any_data(const AcceptedJob& job) {
  std::string data = fmt::format(R"({{"from":"{}","part":{}}})", job.job.lock, ++made_);
  if (rng_.below(40) == 0) data.insert(data.size() - 1, R"(,"x":")" + std::string(110'000, 'x') + '"');
  return data;
}

bool Consumer::update(const AcceptedJob& job, bool& cancel) {
  const auto data = rng_.below(4) == 0 ? std::optional(any_data(job)) : std::nullopt;
  const auto progress = rng_.below(2) == 0 ? std::optional(fmt::format("{}", rng_.below(100))) : std::nullopt;
  const auto go = [&](kv::Transaction& tx) {
    cancel = jobs::update(base_.queue, tx, job.attempt(), data, progress).cancel;
  };
  if (data || progress || rng_.below(4) == 0) {
    Step step{.kind = Step::Kind::update,
              .type = job.job.type,
              .id = job.job.id,
              .lock = job.job.lock,
              .data = data ? std::optional(fingerprint(*data)) : std::nullopt,
              .progress = progress};
    return base_.perform(step, go) == false;
  }
  // A heartbeat: nothing else is written.
  try {
    base_.store.run(go);
  } catch (const kv::Error& error) { base_.check_expected(error); } catch (const jobs::LockLost&) {
    world_.count("halts of updates");
    return true;
  }
  return false;
}

void Consumer::end(const AcceptedJob& job, Step::Kind how) {
  // Retries until the result is known: the job of a worker is not reclaimed while the worker lives.
  for (std::optional<bool> done; !done && !world_.is_unwinding();) {
    Step step{.kind = how, .type = job.job.type, .id = job.job.id, .lock = job.job.lock};
    const bool tells = !base_.cluster.quiet && how == Step::Kind::finish && rng_.below(4) == 0;
    const auto data = tells ? std::optional(any_data(job)) : std::nullopt;
    if (data) step.data = fingerprint(*data);
    const bool has_result = how == Step::Kind::finish && rng_.below(3) == 0;
    const auto result = has_result ? std::optional(any_data(job)) : std::nullopt;
    if (result) step.result = fingerprint(*result);
    const bool tells_when = !base_.cluster.quiet && how != Step::Kind::finish && rng_.below(3) == 0;
    if (tells_when) step.delay = static_cast<std::int64_t>(rng_.below(5000));
    if (tells_when && how == Step::Kind::fail && rng_.below(3) == 0) step.delay = -1;
    const auto delay = step.delay.value_or(-1) >= 0
                           ? std::optional<Duration>(std::chrono::milliseconds(*step.delay))
                           : std::nullopt;
    // Some runs add another job in the transaction that ends them.
    const bool asks = !base_.cluster.quiet && how == Step::Kind::finish && rng_.below(6) == 0;
    Step next{.kind = Step::Kind::add,
              .type = job.job.type,
              .data = fmt::format(R"({{"after":"{}"}})", job.job.lock)};
    done = base_.perform(
        step,
        [&](kv::Transaction& tx) {
          const auto attempt = job.attempt();
          if (how == Step::Kind::fail) {
            return jobs::fail(base_.queue, tx, attempt, "It did not work.",
                              {.retry = step.delay != -1, .delay = delay});
          }
          if (how == Step::Kind::release) return jobs::release(base_.queue, tx, attempt, delay);
          tx.add(effect_key(job.job.type, job.job.id), 1);
          jobs::finish(base_.queue, tx, attempt, data, std::nullopt, result);
          if (asks) next.id = base_.queue.add(tx, next.type, std::nullopt, *next.data).id;
        },
        asks ? &next : nullptr);
  }
}

}  // namespace divan::sim
