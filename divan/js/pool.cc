#include "divan/js/pool.h"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/js/requests.h"

namespace divan::js {
namespace {

constexpr std::size_t kLeastMemory = std::size_t{128} << 20;  // the engine itself crashes at 64 MiB

PoolOptions checked(PoolOptions options) {
  if (options.memory < kLeastMemory) throw bad_request("A JavaScript process needs at least 128 MiB.");
  if (options.processes == 0) options.processes = std::max(1U, std::thread::hardware_concurrency());
  return options;
}

// The most programs that are remembered as slow or as fast, and for how long.
constexpr std::size_t kMaxRemembered = 1000;
constexpr Duration kRememberedFor = std::chrono::minutes(10);

// Compiling usually takes milliseconds, but the source is untrusted.
constexpr Duration kMaxCheck = std::chrono::seconds(1);

bool has_failed(const std::optional<Failure>& failure) { return failure.has_value(); }

// The deadline in real time for limits that are in processor time: generous, since the machine may be busy.
Duration hard_limit(const Program& program, const Limits& limits, Duration margin) {
  const auto calls = static_cast<std::int64_t>(program.functions.size()) + 1;
  return limits.batch + 2 * calls * limits.invocation.value() + margin;
}

}  // namespace

// Holds a process for one call.
class Pool::Lease {
 public:
  Lease(Pool& pool, std::string_view program_key, const Owner& owner, Choice choice, Purpose purpose,
        const std::stop_token& stop)
      : pool_(pool),
        process_(pool.acquire(program_key, owner, choice, purpose, stop, call_)),
        since_(pool.clock_.now()) {}
  ~Lease() { pool_.release(std::move(process_), call_, usable, pool_.clock_.now() - since_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Process& process() { return *process_; }

  // False while a request has no response.
  bool usable = true;

 private:
  Pool& pool_;
  ProcessScheduler::Call call_;
  std::unique_ptr<Process> process_;
  const MonotonicTime since_;
};

Pool::Pool(PoolOptions options, const Clock& clock)
    : options_(checked(std::move(options))),
      clock_(clock),
      stop_fd_(eventfd(0, EFD_CLOEXEC)),
      memory_(options_.memory),
      invocation_(options_.invocation),
      reduce_limit_(options_.reduce_limit),
      log_limiter_(options_.log_lines),
      scheduler_(options_.processes, options_.reserved),
      slow_(kRememberedFor, kMaxRemembered),
      quick_(kRememberedFor, kMaxRemembered) {
  if (stop_fd_ < 0) throw internal_error(fmt::format("eventfd: {}", std::strerror(errno)));
}

Pool::~Pool() { close(stop_fd_); }

void Pool::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  eventfd_write(stop_fd_, 1);
  changed_.notify_all();
}

void Pool::configure(const PoolOptions& options) {
  const auto wanted = checked(options);
  std::vector<std::unique_ptr<Process>> unfit;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  if (wanted.memory != memory_) unfit = take_all_idle();
  scheduler_.set_processes(wanted.processes);
  memory_ = wanted.memory;
  invocation_ = wanted.invocation;
  reduce_limit_ = wanted.reduce_limit;
  log_limiter_.set_rate(wanted.log_lines);
  changed_.notify_all();
}

void Pool::replace_processes() {
  std::vector<std::unique_ptr<Process>> ended;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  ended = take_all_idle();
  replaced_at_ = clock_.now();
  changed_.notify_all();
}

Duration Pool::invocation() const {
  std::lock_guard lock(mutex_);
  return invocation_;
}

ReduceLimit Pool::reduce_limit() const {
  std::lock_guard lock(mutex_);
  return reduce_limit_;
}

Limits Pool::with_invocation(Limits limits) const {
  std::lock_guard lock(mutex_);
  if (!limits.invocation) limits.invocation = invocation_;
  return limits;
}

void Pool::check(const Function& function, std::string_view what, const std::string& root) {
  const Program program{{}, {function}, root};
  Limits limits = with_invocation({});
  limits.invocation = std::min(*limits.invocation, kMaxCheck);
  const auto request = load_request(protocol::kNoSlot, program.functions, limits, root);
  std::optional<Failure> failure;
  const auto read = [&](const std::string& response, Log& log) {
    auto failures = parse_load_response(response, 1, log);
    if (failures) failure = std::move(failures->front());
    return failures.has_value();
  };
  Death death;
  for (int attempt = 0; attempt < 2; ++attempt) {
    Lease lease(*this, {}, function.owner, attempt == 0 ? Choice::any : Choice::fresh, Purpose::check, {});
    death = {};
    if (call(lease, request, read, program, limits, death)) break;
    failure = death.failure;
  }
  if (!failure) return;
  throw Error(400, "compilation_error",
              fmt::format("Compilation of the {} failed: {}", what, failure->message));
}

Purpose Pool::purpose_of(const std::string& program_key, const Limits& limits) const {
  if (!limits.urgent) return Purpose::background;
  if (limits.waited_for) return Purpose::urgent;
  std::lock_guard lock(mutex_);
  return quick_.contains(program_key, clock_.now()) ? Purpose::urgent : Purpose::trial;
}

Failure Pool::protocol_violation() {
  return {FailureKind::crashed, "the JavaScript process violated the protocol"};
}

bool Pool::run(const Program& program, Choice choice, const MakeRequest& request, const ReadResponse& read,
               const Limits& limits, Death& death) {
  const auto key = program.key();
  Lease lease(*this, key, program.owner(), choice, purpose_of(key, limits), limits.stop);
  std::uint32_t slot = 0;
  return load(lease, program, slot, limits, death) &&
         call(lease, request(slot), read, program, limits, death);
}

// Loads the program into a slot of the process, unless it is in one.
bool Pool::load(Lease& lease, const Program& program, std::uint32_t& slot, const Limits& limits,
                Death& death) {
  const auto key = program.key();
  const auto found = lease.process().find(key);
  death.loading = !found;
  slot = found ? *found : lease.process().empty_slot();
  if (found) return true;
  bool unfinished = false;
  const auto loaded = [&](const std::string& response, Log& log) {
    const auto failures = parse_load_response(response, program.functions.size(), log);
    unfinished = limits.urgent && failures && std::any_of(failures->begin(), failures->end(), has_failed);
    return failures.has_value();
  };
  if (!call(lease, load_request(slot, program.functions, limits, program.root), loaded, program, limits,
            death)) {
    return false;
  }
  // It may compile within the full time limit: keep the slot empty.
  if (unfinished) {
    death.failure = {FailureKind::timeout, "takes too long to compile"};
    return false;
  }
  lease.process().fill(slot, key);
  death.loading = false;
  return true;
}

Outcome Pool::list(const Program& program, std::string_view arguments, std::string_view rows,
                   const ListStep& step, const Limits& some_limits) {
  const Limits limits = with_invocation(some_limits);
  std::optional<ListResponse> response;
  const auto read = [&](const std::string& frame, Log& log) {
    response = parse_list_response(frame, log);
    return response.has_value();
  };
  Death death;
  const auto attempt = [&](Choice choice) {
    Lease lease(*this, program.key(), program.owner(), choice, Purpose::list, limits.stop);
    std::uint32_t slot = 0;
    response.reset();
    if (!load(lease, program, slot, limits, death)) return false;
    bool responds = call(lease, list_request(slot, arguments, rows, limits), read, program, limits, death);
    const bool has_begun = responds;
    while (responds && response->state != ListState::ended) {
      // Until its list has ended, the process is of no use for other calls.
      lease.usable = false;
      const bool wants_rows = response->state == ListState::wants_rows;
      auto more = step(std::get<std::string>(std::move(response->outcome)), wants_rows);
      if (!wants_rows) more = {};
      responds = call(lease, rows_request(more.rows, more.is_last, limits), read, program, limits, death);
    }
    if (!responds) response.reset();
    return has_begun;
  };
  // The output of the first steps cannot be taken back: only the first one is tried twice.
  if (!attempt(Choice::any) && !death.stuck_in) attempt(Choice::fresh);
  if (!response && death.loading) {
    throw Error(500, "os_process_error",
                fmt::format("Compiling the functions failed: {}.", death.failure.message));
  }
  Outcome outcome = response ? std::move(response->outcome) : Outcome(death.failure);
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  ++stats_.applied;
  if (std::holds_alternative<Failure>(outcome)) ++stats_.failures;
  return outcome;
}

bool Pool::call(Lease& lease, const std::string& request, const ReadResponse& read, const Program& program,
                const Limits& limits, Death& death) {
  lease.usable = false;
  auto response = lease.process().call(request, hard_limit(program, limits, options_.margin), limits.stop);
  Log log;
  death.stuck_in.reset();
  if (!response) {
    // If the call was ended, no function has failed.
    refuse_if_ended(limits.stop);
    death.failure = lease.process().failure();
    return false;
  }
  death.stuck_in = parse_stuck_response(*response);
  if (death.stuck_in) {
    death.failure = {FailureKind::timeout,
                     "exceeded the time limit of one call and could not be interrupted"};
    return false;
  }
  if (!read(std::move(*response), log)) {
    death.failure = protocol_violation();
    return false;
  }
  lease.usable = true;
  write_log(program, log);
  return true;
}

// The number of lines dropped before this one; nullopt if the owner's functions are over their limit.
std::optional<std::uint64_t> Pool::may_log(const Owner& owner) {
  std::lock_guard lock(mutex_);
  return log_limiter_.take(fmt::format("{}/{}", owner.number, owner.design_document), clock_.now());
}

void Pool::write_log(const Program& program, const Log& log) {
  if (!options_.log) return;
  for (const auto& line : log.lines) {
    const auto& function = program.functions[line.function];
    const auto lost = may_log(function.owner);
    if (!lost) continue;
    if (*lost > 0) options_.log(function, fmt::format("... ({} lines dropped)", *lost));
    options_.log(function, line.text);
  }
  if (log.dropped == 0 || log.lines.empty()) return;
  const auto& owner = program.owner();
  std::lock_guard lock(mutex_);
  log_limiter_.add_dropped(fmt::format("{}/{}", owner.number, owner.design_document), log.dropped,
                           clock_.now());
}

void Pool::log_failure(const Function& function, std::string_view line) {
  const auto lost = may_log(function.owner);
  if (!lost) return;
  if (*lost == 0) {
    log::info("{}", line);
  } else {
    log::info("{} ({} earlier lines dropped)", line, *lost);
  }
}

}  // namespace divan::js
