// A client: adds jobs, resubmits, cancels and removes them, and lists them.
#include <fmt/core.h>

#include "divan/jobs/listing.h"
#include "sim/cluster.h"

namespace divan::sim {
namespace {

class Client {
 public:
  Client(Cluster& cluster, Process& process) : base_(cluster, process), rng_(cluster.world.rng()) {}

  void run() {
    while (!base_.cluster.quiet && !base_.is_leaving()) {
      base_.world.pause(base_.pause_up_to(base_.cluster.plan.client_pause));
      const auto operation = rng_.below(100);
      if (happens(rng_, base_.cluster.plan.clearing)) {
        clear_type();
      } else if (operation < 60) {
        add();
      } else if (operation < 88) {
        change();
      } else if (operation < 90) {
        pause_or_go_on();
      } else {
        check_list();
      }
    }
    base_.world.wait(nullptr, MonotonicTime::max(),
                     [this] { return base_.cluster.closing || base_.is_leaving(); });
  }

 private:
  std::string any_type() {
    const auto& types = base_.cluster.plan.types;
    return types[rng_.below(types.size())];
  }
  std::string any_id() { return fmt::format("job{}", rng_.below(base_.cluster.plan.ids)); }

  // A time in the near future or past by the true clock, or 0.
  std::int64_t any_time() {
    if (rng_.below(3) > 0) return 0;
    return base_.cluster.true_clock.wall_ms() - 5'000 + static_cast<std::int64_t>(rng_.below(20'000));
  }

  std::string any_limits() {
    const auto own = [&](std::string_view name, std::int64_t least, std::uint64_t range) {
      return fmt::format(R"({{"{}":{}}})", name, least + static_cast<std::int64_t>(rng_.below(range)));
    };
    switch (rng_.below(5)) {
      case 0: return jobs::job_limits(own("max_attempts", 1, 4));
      case 1: return jobs::job_limits(own("max_lost", 1, 4));
      case 2: return jobs::job_limits(own("timeout", 500, 10'000));
      case 3: return jobs::job_limits(own("max_runtime", 500, 10'000));
      default: return jobs::job_limits(own("backoff_min", 100, 5000));
    }
  }

  // One of few, so that the same is requested again. In minutes, since a world lasts a minute or two.
  jobs::Schedule any_schedule() {
    const auto missed = rng_.below(2) == 0 ? jobs::Missed::once : jobs::Missed::skip;
    return jobs::Schedule::parse(rng_.below(2) == 0 ? "* * * * *" : "1-59/2 * * * *", "UTC", missed);
  }

  std::string any_data() {
    if (rng_.below(8) == 0) return "{}";
    std::string data = fmt::format(R"({{"for":"{}"}})", ++made_);
    data.insert(data.size() - 1,
                fmt::format(R"(,"by":"{}.{}")", base_.process.name, base_.process.incarnation));
    // Some take more than one row.
    if (rng_.below(40) == 0) data.insert(data.size() - 1, R"(,"x":")" + std::string(150'000, 'x') + '"');
    return data;
  }

  // Sometimes adds the same job again.
  void add() {
    if (wish_.type.empty() || rng_.below(8) > 0) {
      wish_ = {.type = any_type(),
               .id = rng_.below(8) > 0 ? std::optional(any_id()) : std::nullopt,
               .data = any_data(),
               .options = {.priority = static_cast<std::int64_t>(rng_.below(3))}};
      if (const auto time = any_time(); time != 0) wish_.options.scheduled_at = time;
      if (base_.cluster.plan.periodic && wish_.id && rng_.below(8) == 0) {
        wish_.options.scheduled_at.reset();
        wish_.options.schedule = any_schedule();
      }
      if (rng_.below(5) == 0) wish_.options.limits = any_limits();
    }
    Step step{.kind = Step::Kind::add,
              .type = wish_.type,
              .data = fingerprint(wish_.data),
              .scheduled_at = wish_.options.scheduled_at.value_or(0),
              .priority = wish_.options.priority,
              .schedule = wish_.options.schedule ? wish_.options.schedule->json() : "",
              .limits = wish_.options.limits};
    base_.perform(step, [&](kv::Transaction& tx) {
      step.id = base_.queue.add(tx, wish_.type, wish_.id, wish_.data, wish_.options).id;
    });
  }

  void change() {
    using Kind = Step::Kind;
    constexpr Kind kKinds[] = {Kind::resubmit, Kind::cancel, Kind::remove};
    Step step{.kind = kKinds[rng_.below(3)], .type = any_type(), .id = any_id()};
    if (step.kind == Kind::resubmit) step.scheduled_at = any_time();
    base_.perform(step, [&](kv::Transaction& tx) {
      if (step.kind == Kind::resubmit) base_.queue.resubmit(tx, step.type, step.id, step.scheduled_at);
      if (step.kind == Kind::cancel) base_.queue.cancel(tx, step.type, step.id);
      if (step.kind == Kind::remove) base_.queue.remove(tx, step.type, step.id);
    });
  }

  void pause_or_go_on() {
    const std::string type = any_type();
    auto settings = base_.cluster.plan.settings.at(type);
    settings.paused = rng_.below(2) == 0;
    // Also while jobs are accepted and run.
    if (settings.max_running || rng_.below(4) == 0)
      settings.max_running = 1 + static_cast<std::int64_t>(rng_.below(4));
    base_.world.trace(fmt::format("{} {}", settings.paused ? "pauses" : "resumes", type));
    try {
      base_.store.run([&](kv::Transaction& tx) {
        if (!base_.cluster.quiet) base_.queue.set_type(tx, type, settings);
      });
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }

  // Removes a type with all its jobs, and declares it again.
  void clear_type() {
    Step step{.kind = Step::Kind::clear_type, .type = any_type()};
    // So that jobs are accepted while it is removed.
    for (auto jobs = rng_.below(4); jobs > 0; --jobs) base_.add_job(step.type);
    base_.perform(step, [&](kv::Transaction& tx) {
      base_.queue.remove_type(tx, step.type, true);
      base_.queue.set_type(tx, step.type, base_.cluster.plan.settings.at(step.type));
    });
  }

  // Counts and list of the same version must agree.
  void check_list() {
    const std::string type = any_type();
    try {
      base_.store.run([&](kv::Transaction& tx) {
        auto counts = base_.queue.counts(tx, type);
        for (const auto& job : list_jobs(base_.queue, tx, type, {.limit = SIZE_MAX}).jobs)
          --counts[job.state];
        for (const auto& [state, left] : counts) {
          if (left != 0) {
            base_.world.fail(fmt::format("The counts of {} are not those of its list.", type));
          }
        }
      });
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }

  Base base_;
  Rng& rng_;
  int made_ = 0;
  struct Wish {
    std::string type;
    std::optional<std::string> id;
    std::string data;
    jobs::Queue::AddOptions options;
  } wish_;
};

}  // namespace

void start_client(Cluster& cluster, Process& process) {
  auto client = std::make_shared<Client>(cluster, process);
  cluster.world.spawn(&process, "client", [client] { client->run(); });
}

}  // namespace divan::sim
