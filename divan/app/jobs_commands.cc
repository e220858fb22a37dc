#include "divan/app/jobs_commands.h"

#include <CLI/CLI.hpp>

#include "divan/app/jobs_changes.h"
#include "divan/app/jobs_views.h"
#include "divan/app/jobs_watch.h"
#include "divan/app/live.h"
#include "divan/base/error.h"

namespace divan::app {
namespace {

constexpr int kMaxWords = 1'000'000;
constexpr std::uint64_t kMaxListed = 1'000'000'000;

const std::vector<std::string> kStateNames = {"pending", "running", "finished", "failed", "cancelled"};

struct JobsOptions {
  QueryOptions query;
  JobRange range{.type = "", .limit = 100};
  std::string type, id, state;
  std::vector<std::string> words;  // ids, or settings
  AddJobOptions add;
  std::string interval = "1s";
  bool force = false;
};

// Shows positional arguments with any number of words as "ID..." in the usage line.
class Usage final : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    if (option->get_expected_max() != kMaxWords) return CLI::Formatter::make_option_usage(option);
    const std::string words = option->get_name(true) + "...";
    return option->get_required() ? words : "[" + words + "]";
  }
};

// Subcommands share their options, since only those of one are given.
class JobsCommands {
 public:
  JobsCommands(CLI::App& app, Command& command)
      : jobs_(*app.add_subcommand("jobs", "Show and change the job queue (default: types)")),
        command_(command),
        options_(std::make_shared<JobsOptions>()) {
    // At most one, so that the words after it are never interpreted as another.
    jobs_.require_subcommand(0, 1);
    jobs_.formatter(std::make_shared<Usage>());
    add_query(jobs_, options_->query);
    jobs_.callback([&command, options = options_] {
      if (!command) command = [options] { return show_types(options->query); };
    });
  }

  void add_views() {
    auto& types = add("types", "Show types with their jobs by state and their non-default settings");
    run(types, [](JobsOptions& o) { return show_types(o.query); });

    auto& list = add(
        "list",
        "List the jobs of a type by id; with --state, pending ones as they run, ended ones as they ended");
    list.add_option("TYPE", options_->range.type, "Job type")->required();
    list.add_option("--state", options_->range.state, "Only jobs in this state")
        ->check(CLI::IsMember(kStateNames));
    list.add_flag("--descending", options_->range.descending,
                  "Reverse the order: the most recently ended jobs first");
    list.add_option("--limit", options_->range.limit, "Maximum number of jobs")
        ->check(CLI::Range(std::uint64_t{1}, kMaxListed).description(""))
        ->capture_default_str();
    list.add_option("--start-id", options_->range.start_id, "Begin with this job");
    run(list, [](JobsOptions& o) { return list_jobs(o.query, o.range); });

    auto& show = add("show", "Show a job with its attempts and data");
    show.add_option("TYPE", options_->type, "Job type")->required();
    show.add_option("ID", options_->id, "Job")->required();
    run(show, [](JobsOptions& o) { return show_job(o.query, o.type, o.id); });
  }

  void add_watch() {
    auto& watch = add("watch", "Watch all types, one type's running and failed jobs, or one job");
    auto* type = watch.add_option("TYPE", options_->type, "Only this type");
    auto* id = watch.add_option("ID", options_->id, "Only this job, until it ends");
    watch.add_option("--interval", options_->interval, "Time between two polls (not for one job)")
        ->capture_default_str();
    watch.footer(
        "Press Ctrl-C to end. On a terminal the table is updated in place. One job is watched until it "
        "ends:\nthe exit status is 0 if it is finished, 1 if it is failed, cancelled or removed.");
    run(watch, [type, id](JobsOptions& o) {
      const auto interval = parse_interval(o.interval);
      if (id->count() > 0) return watch_job(o.query, o.type, o.id);
      return type->count() > 0 ? watch_type(o.query, o.type, interval) : watch_types(o.query, interval);
    });
  }

  void add_changes() {
    auto& add_one = add("add", "Add a job; change it, or run it again, if it exists");
    add_one.add_option("TYPE", options_->add.type, "Job type")->required();
    auto* id = add_one.add_option("ID", options_->add.id, "Job; generated if missing");
    add_one.add_option("--data", options_->add.data, "JSON, @FILE, or - for standard input");
    auto* at = add_one.add_option("--at", options_->add.at, "Earliest time to run: 2030-01-31T08:00Z");
    auto* in = add_one.add_option("--in", options_->add.in, "Earliest time to run, from now: 10m, 1h30m");
    in->excludes(at);
    add_one.add_option("--priority", options_->add.priority, "Lower values run first (default: 0)");
    add_schedule(add_one)->excludes(at)->excludes(in);
    add_limits(add_one);
    run(add_one, [id](JobsOptions& o) {
      if (id->count() > 0 && o.add.id.empty()) throw bad_request("The job's id is empty.");
      return add_job(o.query, o.add);
    });

    add_change("cancel", JobChange::cancel, "Cancel pending jobs; ask the workers of running ones to stop",
               {"pending", "running"});
    add_change("resubmit", JobChange::resubmit, "Run jobs again with their current data",
               {"pending", "failed", "cancelled", "finished"});
    auto& redeliver = add("redeliver", "Deliver jobs again: those named, or all that have failed");
    redeliver.add_option("TYPE", options_->type, "Job type")->required();
    add_ids(redeliver);
    run(redeliver, [](JobsOptions& o) { return redeliver_jobs(o.query, o.type, o.words); });
    add_change("remove", JobChange::remove, "Remove jobs with their history, including running ones",
               kStateNames);
  }

  void add_types() {
    auto& set = add("set", "Change settings of a type; declare it if it does not exist");
    set.add_option("TYPE", options_->type, "Job type")->required();
    add_words(set, "SETTING", "NAME=VALUE: paused=true max_running=4 max_running=null retention=7d");
    run(set, [](JobsOptions& o) { return set_type(o.query, o.type, o.words); });

    auto& remove = add("remove-type", "Remove a type that has no jobs");
    remove.add_option("TYPE", options_->type, "Job type")->required();
    remove.add_flag("--force", options_->force, "Remove its jobs, too");
    run(remove, [](JobsOptions& o) { return remove_type(o.query, o.type, o.force); });
  }

 private:
  CLI::App& add(const std::string& name, const std::string& description) {
    auto& command = *jobs_.add_subcommand(name, description);
    add_query(command, options_->query);
    return command;
  }

  template <class Do>
  void run(CLI::App& subcommand, Do what) {
    subcommand.callback([&command = command_, options = options_, what] {
      command = [options, what] { return what(*options); };
    });
  }

  // Accepts words of any characters. For a vector CLI11 would parse a word in brackets as a list, and a word
  // after `--` and another word as a command; for an option of a fixed, large number it does neither.
  CLI::Option* add_words(CLI::App& command, const std::string& name, const std::string& description) {
    const auto take = [options = options_](const CLI::results_t& words) {
      options->words = words;
      return true;
    };
    return command.add_option(name, take, description)
        ->expected(kMaxWords)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->option_text("...");
  }

  CLI::Option* add_schedule(CLI::App& command) {
    AddJobOptions& job = options_->add;
    auto* schedule = command.add_option("--schedule", job.schedule,
                                        "Run repeatedly, by this cron expression: \"*/5 * * * *\", @daily");
    command.add_option("--time-zone", job.time_zone, "Time zone of the schedule (default: UTC)")
        ->needs(schedule);
    command
        .add_option("--missed", job.missed,
                    "Missed occurrences: run once for all of them (once), or not (skip)")
        ->check(CLI::IsMember({"once", "skip"}))
        ->needs(schedule);
    return schedule;
  }

  // The job's own settings, which override those of its type.
  void add_limits(CLI::App& command) {
    const auto add = [&](const std::string& option, const std::string& setting,
                         const std::string& description) {
      const auto take = [options = options_, setting](const std::string& value) {
        options->add.limits[setting] = value;
      };
      command.add_option_function<std::string>(option, take, description)
          ->group("Settings that override the type's");
    };
    add("--timeout", "timeout", "Time until a silent running job is lost: 30s, 5m");
    add("--max-attempts", "max_attempts", "Number of failures until the job is failed");
    add("--max-lost", "max_lost", "Number of lost attempts until the job is failed; null: unlimited");
    add("--backoff-min", "backoff_min", "Shortest pause after a failure");
    add("--backoff-max", "backoff_max", "Longest pause after a failure");
    add("--max-runtime", "max_runtime", "Maximum duration of an attempt: 1h; null: unlimited");
  }

  CLI::Option* add_ids(CLI::App& command) { return add_words(command, "ID", "Jobs"); }

  void add_change(const std::string& name, JobChange change, const std::string& description,
                  const std::vector<std::string>& states) {
    auto& command = add(name, description);
    command.add_option("TYPE", options_->type, "Job type")->required();
    command.add_option("--state", options_->state, "All jobs in this state, instead of ids")
        ->check(CLI::IsMember(states))
        ->excludes(add_ids(command));
    run(command, [change](JobsOptions& o) {
      if (!o.state.empty()) return change_all(o.query, change, o.type, o.state);
      if (o.words.empty()) throw bad_request("No jobs are given; expected ids or --state.");
      return change_jobs(o.query, change, o.type, o.words);
    });
  }

  CLI::App& jobs_;
  Command& command_;
  const std::shared_ptr<JobsOptions> options_;
};

}  // namespace

void add_jobs_commands(CLI::App& app, Command& command) {
  JobsCommands commands(app, command);
  commands.add_views();
  commands.add_watch();
  commands.add_changes();
  commands.add_types();
}

}  // namespace divan::app
