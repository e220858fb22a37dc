#include "divan/js/pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/js/requests.h"

namespace divan::js {
namespace {

constexpr std::size_t kLeastMemory = std::size_t{128} << 20;  // the engine itself crashes at 64 MiB

// The most bytes of all results of a call of reduce(); functions that return more fail.
constexpr std::size_t kMaxReductions = protocol::kMaxFrame;

// The size of the rows in CouchDB's form: [[[key,"id"],value],...], or [value,...].
std::uint64_t bytes_of(const ReduceGroup& group, bool rereduce) {
  std::uint64_t bytes = 2;
  for (const auto& row : group)
    bytes += row.value.size() + (rereduce ? 1 : row.key.size() + row.id.size() + 9);
  return bytes;
}

void append(MapResult& all, MapResult more) { all.append(std::move(more)); }
void append(std::vector<Reduction>& all, std::vector<Reduction> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}
std::size_t size_of(const MapResult& result) { return result.documents(); }
std::size_t size_of(const std::vector<Reduction>& result) { return result.size(); }
void append_failed(MapResult& all, const Failure& failure) { all.append_failed(failure); }
void append_failed(std::vector<Reduction>& all, const Failure& failure) { all.emplace_back(failure); }

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

const Owner& owner_of(const Program& program) {
  static const Owner no_owner;
  return program.functions.empty() ? no_owner : program.functions.front().owner;
}

// The key of a program in a process. Equal programs of two databases have different keys, and so do not share
// globals.
std::string key_of(const Program& program) {
  return fmt::format("{}/{}", owner_of(program).number, program.id);
}

Failure protocol_violation() {
  return {FailureKind::crashed, "the JavaScript process violated the protocol"};
}

bool has_failed(const std::optional<Failure>& failure) { return failure.has_value(); }
bool timed_out(const MapResult& result) { return result.timed_out(); }
bool timed_out(const std::vector<Reduction>& result) {
  return std::any_of(result.begin(), result.end(), [](const auto& reduction) {
    const auto* const failure = std::get_if<Failure>(&reduction);
    return failure != nullptr && failure->kind == FailureKind::timeout;
  });
}

std::size_t count_failures(const std::vector<Reduction>& result) {
  return static_cast<std::size_t>(std::count_if(result.begin(), result.end(), [](const auto& reduction) {
    return std::holds_alternative<Failure>(reduction);
  }));
}

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

  // False while a request is unanswered.
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
  if (wanted.memory != memory_) {
    unfit = std::exchange(idle_, {});
    alive_ -= unfit.size();
    stats_.recycled += unfit.size();
    DIVAN_CHECK(alive_ == running_.size(), "{} processes and {} calls", alive_, running_.size());
  }
  scheduler_.set_processes(wanted.processes);
  memory_ = wanted.memory;
  invocation_ = wanted.invocation;
  reduce_limit_ = wanted.reduce_limit;
  log_limiter_.set_rate(wanted.log_lines);
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

void Pool::check(const Function& function, std::string_view kind, std::string_view view,
                 const std::string& lib) {
  const Program program{{}, {function}, lib};
  Limits limits = with_invocation({});
  limits.invocation = std::min(*limits.invocation, kMaxCheck);
  const auto request = load_request(protocol::kNoSlot, program.functions, limits, lib);
  std::optional<Failure> failure;
  const auto read = [&](const std::string& answer, Log& log) {
    auto failures = parse_load_answer(answer, 1, log);
    if (failures) failure = std::move(failures->front());
    return failures.has_value();
  };
  Death death;
  for (int attempt = 0; attempt < 2; ++attempt) {
    Lease lease(*this, {}, function.owner, attempt == 0 ? Choice::any : Choice::fresh, Purpose::check, {});
    death = {};
    if (ask(lease, request, read, program, limits, death)) break;
    failure = death.failure;
  }
  if (!failure) return;
  throw Error(400, "compilation_error",
              fmt::format("Compilation of the {} function in the '{}' view failed: {}", kind, view,
                          failure->message));
}

MapResult Pool::map(const Program& program, std::span<const std::string_view> documents,
                    const Limits& some_limits) {
  const Limits limits = with_invocation(some_limits);
  MapResult none(program.functions.size());
  if (documents.empty()) return none;
  documents = documents.first(fitting(documents));
  auto result = do_batch(
      program, documents.size(), std::move(none), limits,
      [&](std::size_t first, std::size_t count, Choice choice, const Limits& within,
          Death& death) -> std::optional<MapResult> {
        const auto some = documents.subspan(first, count);
        std::optional<MapResult> answered;
        run(
            program, choice, [&](std::uint32_t slot) { return map_request(slot, some, within); },
            [&](std::string answer, Log& log) {
              answered = parse_map_answer(std::move(answer), some.size(), program.functions.size(), log);
              return answered.has_value();
            },
            within, death);
        return answered;
      });
  DIVAN_CHECK(result.documents() > 0 && result.documents() <= documents.size(),
              "{} documents were done of {}", result.documents(), documents.size());
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  stats_.documents += result.documents();
  stats_.failures += result.failures();
  return result;
}

void Pool::enforce(const ReduceLimit& limit, const Function& function, std::uint64_t bytes_in,
                   Reduction& reduction) {
  const auto* text = std::get_if<std::string>(&reduction);
  if (text == nullptr || !limit.exceeded(bytes_in, text->size())) return;
  auto message = overflow_message(bytes_in, text->size(), reduce_context(function));
  if (limit.mode == ReduceLimit::Mode::log) {
    log_failure(function, "reduce_overflow_error: " + message);
  } else {
    reduction = Failure{FailureKind::reduce_overflow, std::move(message)};
  }
}

std::vector<Reduction> Pool::reduce(const Function& function, bool rereduce,
                                    std::span<const ReduceGroup> groups, const Limits& some_limits) {
  const Limits limits = with_invocation(some_limits);
  // The id does not include the name: the same function in two views is one program.
  const Program program{"reduce " + function.source, {function}};
  const ReduceLimit limit = reduce_limit();
  std::vector<Reduction> all;
  std::size_t size = 0;
  while (all.size() < groups.size()) {
    auto some = reduce_some(program, rereduce, groups.subspan(all.size()), limits);
    DIVAN_CHECK(!some.empty() && some.size() <= groups.size() - all.size(), "{} reductions of {} groups",
                some.size(), groups.size() - all.size());
    for (auto& reduction : some) {
      if (const auto* text = std::get_if<std::string>(&reduction)) size += text->size();
      enforce(limit, function, bytes_of(groups[all.size()], rereduce), reduction);
      if (size > kMaxReductions)
        reduction = Failure{FailureKind::too_large, "the results of the call exceed the size limit"};
      all.push_back(std::move(reduction));
    }
  }
  return all;
}

std::vector<Reduction> Pool::reduce_some(const Program& program, bool rereduce,
                                         std::span<const ReduceGroup> groups, const Limits& limits) {
  groups = groups.first(fitting(groups));
  auto result = do_batch(
      program, groups.size(), std::vector<Reduction>(), limits,
      [&](std::size_t first, std::size_t count, Choice choice, const Limits& within,
          Death& death) -> std::optional<std::vector<Reduction>> {
        const auto some = groups.subspan(first, count);
        std::optional<std::vector<Reduction>> answered;
        run(
            program, choice, [&](std::uint32_t slot) { return reduce_request(slot, rereduce, some, within); },
            [&](const std::string& answer, Log& log) {
              answered = parse_reduce_answer(answer, some.size(), log);
              return answered.has_value();
            },
            within, death);
        return answered;
      });
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  stats_.groups += result.size();
  stats_.failures += count_failures(result);
  return result;
}

// Processes a batch of `count` items. attempt(first, n, choice, limits, death) processes some of them, or
// returns nullopt and sets `death` if the process died.
template <class Result, class Attempt>
Result Pool::do_batch(const Program& program, std::size_t count, Result none, Limits limits,
                      const Attempt& attempt) {
  if (limits.urgent) {
    if (auto result = try_urgent<Result>(program, count, limits, attempt)) return *std::move(result);
    if (limits.on_slow) limits.on_slow();
    limits.urgent = false;
  }
  return run_isolating_failures(count, std::move(none), limits, attempt);
}

template <class Result, class Attempt>
std::optional<Result> Pool::try_urgent(const Program& program, std::size_t count, const Limits& limits,
                                       const Attempt& attempt) {
  const auto key = key_of(program);
  if (is_slow(key)) return std::nullopt;
  Limits brief = limits;
  brief.invocation = std::min(*limits.invocation, kUrgentInvocation);
  brief.batch = std::min(limits.batch, kUrgentBatch);
  Death death;
  std::optional<Result> answer = attempt(0, count, Choice::any, brief, death);
  const bool is_quick = answer && !timed_out(*answer);
  note_pace(key, !is_quick);
  if (is_quick) return answer;
  // The call has no more time than this one.
  if (answer && brief.invocation == limits.invocation) return answer;
  return std::nullopt;
}

bool Pool::is_slow(const std::string& program_key) const {
  std::lock_guard lock(mutex_);
  return slow_.contains(program_key, clock_.now());
}

void Pool::note_pace(const std::string& program_key, bool is_slow) {
  std::lock_guard lock(mutex_);
  (is_slow ? slow_ : quick_).add(program_key, clock_.now());
  if (is_slow) quick_.erase(program_key);
}

Purpose Pool::purpose_of(const std::string& program_key, const Limits& limits) const {
  if (!limits.urgent) return Purpose::background;
  if (limits.waited_for) return Purpose::urgent;
  std::lock_guard lock(mutex_);
  return quick_.contains(program_key, clock_.now()) ? Purpose::urgent : Purpose::trial;
}

template <class Result, class Attempt>
Result Pool::run_isolating_failures(std::size_t count, Result result, const Limits& limits,
                                    const Attempt& attempt) const {
  Death death;
  const auto try_some = [&](std::size_t first, std::size_t size, Choice choice) {
    auto answer = attempt(first, size, choice, limits, death);
    if (!answer && death.stuck_in && !death.loading && *death.stuck_in >= size)
      death = {.failure = protocol_violation(), .loading = false, .stuck_in = {}};
    return answer;
  };
  for (const auto choice : {Choice::any, Choice::fresh}) {
    if (auto answer = try_some(0, count, choice)) return std::move(*answer);
    if (death.stuck_in) break;
  }
  const bool tried = death.stuck_in ? death.loading : count == 1;
  // The results of the documents before the one that does not end were lost: run them again.
  while (death.stuck_in && !death.loading) {
    DIVAN_CHECK(*death.stuck_in < count, "document {} of {} does not end", *death.stuck_in, count);
    count = *death.stuck_in;
    const Failure failure = std::exchange(death, {}).failure;
    std::optional<Result> answer;
    if (count > 0 && !(answer = try_some(0, count, Choice::any))) continue;
    const std::size_t done = answer ? size_of(*answer) : 0;
    if (answer) append(result, std::move(*answer));
    if (done == count) append_failed(result, failure);
    return result;
  }
  const auto deadline = clock_.now() + limits.batch;
  for (std::size_t i = 0; i < count && (i == 0 || clock_.now() < deadline); ++i) {
    std::optional<Result> answer;
    // Try this twice, too: a process can die for another reason (such as memory pressure), which must not
    // fail a document.
    if (!tried) answer = try_some(i, 1, Choice::any);
    if (!answer && !tried && !death.stuck_in) answer = try_some(i, 1, Choice::fresh);
    if (answer) {
      append(result, std::move(*answer));
    } else if (death.loading) {
      throw Error(500, "os_process_error",
                  fmt::format("Compiling the functions failed: {}.", death.failure.message));
    } else {
      append_failed(result, death.failure);
    }
  }
  return result;
}

bool Pool::run(const Program& program, Choice choice, const MakeRequest& request, const ReadAnswer& read,
               const Limits& limits, Death& death) {
  const auto key = key_of(program);
  Lease lease(*this, key, owner_of(program), choice, purpose_of(key, limits), limits.stop);
  auto slot = lease.process().find(key);
  death.loading = !slot;
  if (!slot) {
    slot = lease.process().empty_slot();
    bool unfinished = false;
    const auto loaded = [&](const std::string& answer, Log& log) {
      const auto failures = parse_load_answer(answer, program.functions.size(), log);
      unfinished = limits.urgent && failures && std::any_of(failures->begin(), failures->end(), has_failed);
      return failures.has_value();
    };
    if (!ask(lease, load_request(*slot, program.functions, limits, program.lib), loaded, program, limits,
             death)) {
      return false;
    }
    // It may compile within the full time limit: keep the slot empty.
    if (unfinished) {
      death.failure = {FailureKind::timeout, "takes too long to compile"};
      return false;
    }
    lease.process().fill(*slot, key);
    death.loading = false;
  }
  return ask(lease, request(*slot), read, program, limits, death);
}

bool Pool::ask(Lease& lease, const std::string& request, const ReadAnswer& read, const Program& program,
               const Limits& limits, Death& death) {
  lease.usable = false;
  auto answer = lease.process().ask(request, hard_limit(program, limits, options_.margin), limits.stop);
  Log log;
  death.stuck_in.reset();
  if (!answer) {
    // If the call was ended, no function has failed.
    refuse_if_ended(limits.stop);
    death.failure = lease.process().failure();
    return false;
  }
  death.stuck_in = parse_stuck_answer(*answer);
  if (death.stuck_in) {
    death.failure = {FailureKind::timeout,
                     "exceeded the time limit of one call and could not be interrupted"};
    return false;
  }
  if (!read(std::move(*answer), log)) {
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
  const auto& owner = owner_of(program);
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
