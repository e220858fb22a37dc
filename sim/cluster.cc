#include "sim/cluster.h"

#include <fmt/core.h>

namespace divan::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

Plan Plan::random(Rng& rng) {
  Plan plan;
  plan.embedded = rng.below(6) == 0;
  // Some worlds have jobs only, some databases only, some have both.
  plan.nodes = rng.below(2) == 0 ? 0 : 1 + rng.below(3);
  plan.jobs = plan.nodes == 0 || rng.below(2) == 0;
  // Some are shorter than the lifetime of a transaction.
  const auto any_timeout = [&] { return rng.below(2) == 0 ? seconds(3) : seconds(15); };
  // Settings are kept in milliseconds.
  const auto ms = [&](Duration low, Duration high) {
    return std::chrono::duration_cast<milliseconds>(between(rng, low, high));
  };
  // Only some, since the end of a world waits for a run of each.
  plan.periodic = rng.below(3) == 0;
  for (std::uint64_t i = 0, types = plan.jobs ? 1 + rng.below(2) : 0; i < types; ++i) {
    plan.types.emplace_back(i == 0 ? "mail" : "index");
    jobs::TypeSettings settings;
    settings.timeout = ms(seconds(1), any_timeout());
    settings.max_attempts = 2 + static_cast<std::int64_t>(rng.below(6));
    settings.backoff_min = ms(milliseconds(100), seconds(2));
    settings.backoff_max = ms(seconds(2), seconds(10));
    settings.retention = rng.below(2) == 0 ? Duration(seconds(20)) : Duration(std::chrono::hours(24));
    if (rng.below(2) == 0) settings.max_lost = 1 + static_cast<std::int64_t>(rng.below(4));
    if (rng.below(3) == 0) settings.max_runtime = ms(seconds(1), seconds(10));
    if (rng.below(3) == 0) settings.retention_failed = seconds(40);
    if (rng.below(3) == 0) settings.max_running = 1 + static_cast<std::int64_t>(rng.below(4));
    plan.settings[plan.types.back()] = settings;
  }
  plan.ids = 2 + rng.below(10);
  plan.worker_timeout = ms(seconds(1), any_timeout());
  plan.acceptors = plan.jobs ? 1 + rng.below(3) : 0;
  draw(rng, 3,
       {{plan.with_worker, 1'000'001},
        {plan.late, 100'000},
        {plan.forget, 150'000},
        {plan.failing, 400'000},
        {plan.late_heartbeat, 200'000},
        {plan.unregistering, 100'000}});
  plan.clearing = rng.below(6) == 0 ? 60'000 : 5'000;
  plan.client_pause = between(rng, milliseconds(200), seconds(5));
  plan.writers = 1 + rng.below(2);
  plan.builders = 1 + rng.below(2);
  plan.documents = 2 + rng.below(10);
  plan.batch = 1 + rng.below(4);
  plan.writer_pause = between(rng, milliseconds(200), seconds(5));
  plan.longest_map = rng.below(2) == 0 ? Duration() : between(rng, {}, seconds(4));
  plan.build_timeout = ms(seconds(1), any_timeout());
  plan.replications = plan.nodes > 0 && rng.below(2) == 0;
  plan.checkpoint_interval = ms(seconds(1), seconds(30));
  return plan;
}

Cluster::Cluster(World& the_world)
    : world(the_world),
      true_clock(world, Duration(), 0, 1.0),
      engine_rng(world.rng().next()),
      engine(world, true_clock, engine_rng),
      other(world, true_clock, engine_rng),
      observer(engine),
      steps(world),
      jobs(engine),
      workers(world),
      attempts(world),
      databases(engine, true_clock),
      indexes(engine, databases),
      triggers(world, databases) {
  observer.add(steps);
  observer.add(jobs);
  observer.add(workers);
  observer.add(attempts);
  observer.add(databases);
  observer.add(indexes);
  observer.add(triggers);
}

std::optional<bool> Base::add_job(const std::string& type,
                                  const std::function<void(kv::Transaction&)>& then) {
  const std::string data = fmt::format(R"({{"by":"{}.{}"}})", process.name, process.incarnation);
  Step step{.kind = Step::Kind::add, .type = type, .data = data};
  return perform(step, [&](kv::Transaction& tx) {
    step.id = queue.add(tx, type, std::nullopt, data).id;
    then(tx);
  });
}

void Base::check_expected(const kv::Error& error) {
  // A commit that is being settled remains unknown.
  if (world.is_unwinding() && (error.code() == kv::ErrorCode::transaction_cancelled ||
                               error.code() == kv::ErrorCode::commit_unknown_result))
    return;
  if (error.code() == kv::ErrorCode::transaction_timed_out) return;
  world.fail(fmt::format("Unexpected error: {}", error.what()));
}

void Base::check_is(std::string_view name, const Error& error) {
  if (error.name() != name) world.fail(fmt::format("Unexpected error: {}", error.what()));
}

void Base::wait_to_leave() {
  const Duration uptime = between(world.rng(), seconds(5), std::chrono::minutes(5));
  world.wait(nullptr, world.now() + uptime, [this] { return cluster.quiet || is_leaving(); });
  if (!cluster.quiet || is_leaving()) {
    cluster.leaving.insert(&process);
    return;
  }
  world.wait(nullptr, MonotonicTime::max(),
             [this] { return cluster.closing && cluster.last_server != &process; });
}

std::optional<bool> Base::perform(Step& step, const std::function<void(kv::Transaction&)>& fn, Step* also) {
  step.token = cluster.token();
  if (also != nullptr) also->token = cluster.token();
  std::optional<bool> result;
  std::string answer = "done";
  try {
    store.run([&](kv::Transaction& tx) {
      fn(tx);
      note(tx, step);
      if (also != nullptr) note(tx, *also);
    });
    result = true;
  } catch (const kv::Error& error) {
    answer = error.name();
    check_expected(error);
  } catch (const Error& error) {
    answer = error.name();
    result = false;
  }
  world.trace(fmt::format("{} {}/{} at {} ({}): {}", kind_name(step.kind), step.type, step.id,
                          step.scheduled_at, step.token, answer));
  world.count(fmt::format("{}: {}", kind_name(step.kind), result.has_value() ? answer : "unknown"));
  if (world.is_unwinding()) return result;
  cluster.steps.compare(step, result);
  if (also != nullptr) cluster.steps.compare(*also, result);
  return result;
}

}  // namespace divan::sim
