#include "divan/js/pool.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/js/requests.h"

namespace divan::js {
namespace {

constexpr std::size_t kLeastMemory = std::size_t{128} << 20;  // the engine itself crashes at 64 MiB

// A reduction's results together: more than this is the function's fault.
constexpr std::size_t kMaxReductions = protocol::kMaxFrame;

// What CouchDB sends of rows to a function: [[[key,"id"],value],...], or [value,...].
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
void append_failed(MapResult& all, const Failure& failure) { all.append_failed(failure); }
void append_failed(std::vector<Reduction>& all, const Failure& failure) { all.emplace_back(failure); }

PoolOptions checked(PoolOptions options) {
  if (options.memory < kLeastMemory) throw bad_request("A JavaScript process needs at least 128 MiB.");
  if (options.processes == 0) options.processes = std::max(1U, std::thread::hardware_concurrency());
  return options;
}

constexpr int kStartAttempts = 3;

Error stopped() { return {503, "service_unavailable", "The server is stopping."}; }

// Compiling takes milliseconds; but a function's text may hold anything.
constexpr Duration kMaxCheck = std::chrono::seconds(1);

const Owner& owner_of(const Program& program) {
  static const Owner nobody;
  return program.functions.empty() ? nobody : program.functions.front().owner;
}

// What a process knows a program by: equal programs of two databases are two, each with its own globals.
std::string key_of(const Program& program) {
  return fmt::format("{}/{}", owner_of(program).number, program.id);
}

std::size_t count_failures(const std::vector<Reduction>& result) {
  return static_cast<std::size_t>(std::count_if(result.begin(), result.end(), [](const auto& reduction) {
    return std::holds_alternative<Failure>(reduction);
  }));
}

// Processor time in the limits becomes real time here, on a machine that may be busy.
Duration hard_limit(const Program& program, const Limits& limits, Duration margin) {
  const auto calls = static_cast<std::int64_t>(program.functions.size()) + 1;
  return limits.batch + 2 * calls * limits.invocation.value() + margin;
}

}  // namespace

// A process that one call holds.
class Pool::Lease {
 public:
  Lease(Pool& pool, std::string_view program_key, std::int64_t database, Choice choice, bool extra = false)
      : pool_(pool),
        database_(database),
        process_(pool.acquire(program_key, database, choice, extra)),
        since_(pool.clock_.now()) {}
  ~Lease() { pool_.give_back(std::move(process_), database_, usable, pool_.clock_.now() - since_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Process& process() { return *process_; }

  // False while it has been asked and not answered.
  bool usable = true;

 private:
  Pool& pool_;
  const std::int64_t database_;
  std::unique_ptr<Process> process_;
  const MonotonicTime since_;
};

Pool::Pool(PoolOptions options, const Clock& clock)
    : options_(checked(std::move(options))),
      clock_(clock),
      stop_fd_(eventfd(0, EFD_CLOEXEC)),
      processes_(options_.processes),
      memory_(options_.memory),
      invocation_(options_.invocation),
      reduce_limit_(options_.reduce_limit),
      budget_(options_.log_lines) {
  if (stop_fd_ < 0) throw internal_error(fmt::format("eventfd: {}", std::strerror(errno)));
}

Pool::~Pool() { close(stop_fd_); }

void Pool::refuse_if_stopping() const {
  std::lock_guard lock(mutex_);
  if (stopping_) throw stopped();
}

void Pool::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  eventfd_write(stop_fd_, 1);
  changed_.notify_all();
}

void Pool::configure(const PoolOptions& options) {
  const auto wanted = checked(options);
  std::vector<std::unique_ptr<Process>> unfit;  // buried when the lock is released
  std::lock_guard lock(mutex_);
  if (wanted.memory != memory_) {
    unfit = std::exchange(idle_, {});
    alive_ -= unfit.size();
    stats_.recycled += unfit.size();
  }
  processes_ = wanted.processes;
  memory_ = wanted.memory;
  invocation_ = wanted.invocation;
  reduce_limit_ = wanted.reduce_limit;
  budget_.set_rate(wanted.log_lines);
  changed_.notify_all();
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
    Lease lease(*this, {}, function.owner.number, attempt == 0 ? Choice::any : Choice::fresh, true);
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
  auto result = survive(
      documents.size(), std::move(none), limits,
      [&](std::size_t first, std::size_t count, Choice choice, Death& death) -> std::optional<MapResult> {
        const auto some = documents.subspan(first, count);
        std::optional<MapResult> answered;
        run(
            program, choice, [&](std::uint32_t slot) { return map_request(slot, some, limits); },
            [&](std::string answer, Log& log) {
              answered = parse_map_answer(std::move(answer), some.size(), program.functions.size(), log);
              return answered.has_value();
            },
            limits, death);
        return answered;
      });
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  stats_.documents += result.documents();
  stats_.failures += result.failures();
  return result;
}

void Pool::hold_to(const ReduceLimit& limit, const Function& function, std::uint64_t bytes_in,
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
  // The name is no part of the id: the same function in two views is one program.
  const Program program{"reduce " + function.source, {function}};
  const ReduceLimit limit = reduce_limit();
  std::vector<Reduction> all;
  std::size_t size = 0;
  while (all.size() < groups.size()) {
    for (auto& reduction : reduce_some(program, rereduce, groups.subspan(all.size()), limits)) {
      if (const auto* text = std::get_if<std::string>(&reduction)) size += text->size();
      hold_to(limit, function, bytes_of(groups[all.size()], rereduce), reduction);
      if (size > kMaxReductions) reduction = Failure{FailureKind::too_large, "returned too much in all"};
      all.push_back(std::move(reduction));
    }
  }
  return all;
}

std::vector<Reduction> Pool::reduce_some(const Program& program, bool rereduce,
                                         std::span<const ReduceGroup> groups, const Limits& limits) {
  groups = groups.first(fitting(groups));
  auto result = survive(
      groups.size(), std::vector<Reduction>(), limits,
      [&](std::size_t first, std::size_t count, Choice choice,
          Death& death) -> std::optional<std::vector<Reduction>> {
        const auto some = groups.subspan(first, count);
        std::optional<std::vector<Reduction>> answered;
        run(
            program, choice, [&](std::uint32_t slot) { return reduce_request(slot, rereduce, some, limits); },
            [&](const std::string& answer, Log& log) {
              answered = parse_reduce_answer(answer, some.size(), log);
              return answered.has_value();
            },
            limits, death);
        return answered;
      });
  std::lock_guard lock(mutex_);
  ++stats_.batches;
  stats_.groups += result.size();
  stats_.failures += count_failures(result);
  return result;
}

// Does a batch of `count` things, of which attempt(first, n, death) does some, or none if the process dies of
// it.
template <class Result, class Attempt>
Result Pool::survive(std::size_t count, Result result, const Limits& limits, const Attempt& attempt) const {
  Death death;
  for (const auto choice : {Choice::any, Choice::fresh}) {
    if (auto answer = attempt(0, count, choice, death)) return std::move(*answer);
  }
  const auto deadline = clock_.now() + limits.batch;
  for (std::size_t i = 0; i < count && (i == 0 || clock_.now() < deadline); ++i) {
    // Twice, too: processes also die of what others do, and a document is not to be lost for that.
    auto answer = count == 1 ? std::nullopt : attempt(i, 1, Choice::any, death);
    if (!answer && count > 1) answer = attempt(i, 1, Choice::fresh, death);
    if (answer) {
      append(result, std::move(*answer));
    } else if (death.loading) {
      throw Error(500, "os_process_error",
                  fmt::format("While the functions were being compiled, {}.", death.failure.message));
    } else {
      append_failed(result, death.failure);
    }
  }
  return result;
}

bool Pool::run(const Program& program, Choice choice, const MakeRequest& request, const ReadAnswer& read,
               const Limits& limits, Death& death) {
  const auto key = key_of(program);
  Lease lease(*this, key, owner_of(program).number, choice);
  auto slot = lease.process().find(key);
  death.loading = !slot;
  if (!slot) {
    slot = lease.process().empty_slot();
    const auto loaded = [&](const std::string& answer, Log& log) {
      return parse_load_answer(answer, program.functions.size(), log).has_value();
    };
    if (!ask(lease, load_request(*slot, program.functions, limits, program.lib), loaded, program, limits,
             death)) {
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
  auto answer = lease.process().ask(request, hard_limit(program, limits, options_.margin));
  Log log;
  if (!answer) {
    // Nobody is to blame then.
    refuse_if_stopping();
    death.failure = lease.process().failure();
    return false;
  }
  if (!read(std::move(*answer), log)) {
    death.failure = {FailureKind::crashed, "the JavaScript process broke its protocol"};
    return false;
  }
  lease.usable = true;
  write_log(program, log);
  return true;
}

// How many lines the owner's functions lack before this one, if they may write one now.
std::optional<std::uint64_t> Pool::may_log(const Owner& owner) {
  std::lock_guard lock(mutex_);
  return budget_.take(fmt::format("{}/{}", owner.number, owner.design_document), clock_.now());
}

void Pool::write_log(const Program& program, const Log& log) {
  if (!options_.log) return;
  for (const auto& line : log.lines) {
    const auto& function = program.functions[line.function];
    const auto lost = may_log(function.owner);
    if (!lost) continue;
    if (*lost > 0) options_.log(function, fmt::format("... ({} lines are left out)", *lost));
    options_.log(function, line.text);
  }
  if (log.dropped == 0 || log.lines.empty()) return;
  const auto& owner = owner_of(program);
  std::lock_guard lock(mutex_);
  budget_.lose(fmt::format("{}/{}", owner.number, owner.design_document), log.dropped, clock_.now());
}

void Pool::log_failure(const Function& function, std::string_view line) {
  const auto lost = may_log(function.owner);
  if (!lost) return;
  if (*lost == 0) {
    log::info("{}", line);
  } else {
    log::info("{} ({} lines before are left out)", line, *lost);
  }
}

std::unique_ptr<Process> Pool::acquire(std::string_view program_key, std::int64_t database, Choice choice,
                                       bool extra) {
  std::vector<std::unique_ptr<Process>> ended;  // buried when the lock is released
  std::unique_lock lock(mutex_);
  ended = take_ended();
  const Waiting call{next_ticket_++, database, extra};
  waiting_.push_back(call);
  const auto next = [&] { return stopping_ || is_next(call); };
  const bool got = next() || clock_.wait_until(lock, changed_, clock_.now() + options_.wait, next);
  std::erase_if(waiting_, [&](const Waiting& other) { return other.ticket == call.ticket; });
  if (!waiting_.empty()) changed_.notify_all();
  if (stopping_) throw stopped();
  if (!got) throw Error(503, "service_unavailable", "All JavaScript processes are busy.");
  ++held_[database];
  if (!idle_.empty() && choice == Choice::any) return take_idle(program_key);
  if (alive_ >= processes_ && !idle_.empty()) {
    ended.push_back(take_idle(program_key));
    --alive_;
    ++stats_.recycled;
  }
  ++alive_;
  const auto memory = memory_;
  lock.unlock();
  try {
    return start(memory);
  } catch (...) {
    lock.lock();
    release(database);
    --alive_;
    changed_.notify_all();
    throw;
  }
}

// Whether there is a process for the call, and nobody who waits goes before it.
bool Pool::is_next(const Waiting& call) const {
  const auto may_have_one = [&](const Waiting& other) {
    return !idle_.empty() || alive_ < processes_ + (other.extra ? 1 : 0);
  };
  const auto held = [&](const Waiting& other) {
    const auto found = held_.find(other.database);
    return found == held_.end() ? 0 : found->second;
  };
  const auto rank = [&](const Waiting& other) { return std::tuple(!other.extra, held(other), other.ticket); };
  return may_have_one(call) && std::none_of(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
           return rank(other) < rank(call) && may_have_one(other);
         });
}

void Pool::release(std::int64_t database) {
  const auto held = held_.find(database);
  if (--held->second == 0) held_.erase(held);
}

std::unique_ptr<Process> Pool::take_idle(std::string_view program_key) {
  auto chosen = std::find_if(idle_.begin(), idle_.end(),
                             [&](const auto& process) { return process->find(program_key).has_value(); });
  if (chosen == idle_.end()) chosen = std::prev(idle_.end());
  auto process = std::move(*chosen);
  idle_.erase(chosen);
  return process;
}

std::vector<std::unique_ptr<Process>> Pool::take_ended() {
  const auto first_ended = std::stable_partition(idle_.begin(), idle_.end(),
                                                 [](const auto& process) { return !process->ended(); });
  std::vector<std::unique_ptr<Process>> ended(std::make_move_iterator(first_ended),
                                              std::make_move_iterator(idle_.end()));
  idle_.erase(first_ended, idle_.end());
  alive_ -= ended.size();
  stats_.died += ended.size();
  return ended;
}

// Called without the lock; the process is counted already.
std::unique_ptr<Process> Pool::start(std::size_t memory) {
  std::unique_ptr<Process> process;
  for (int attempt = 1; !process; ++attempt) {
    try {
      process = std::make_unique<Process>(options_.binary, memory, stop_fd_);
    } catch (const Error&) {
      refuse_if_stopping();
      // The kernel may have chosen it when memory ran short.
      if (attempt == kStartAttempts) throw;
    }
  }
  std::lock_guard lock(mutex_);
  ++stats_.started;
  if (!process->locked() && !std::exchange(warned_, true)) {
    log::warning("{} runs without its system call filter: it was built with a sanitizer.", options_.binary);
  }
  return process;
}

void Pool::give_back(std::unique_ptr<Process> process, std::int64_t database, bool usable, Duration held) {
  const bool grown = process->resident_bytes() > options_.recycle;
  std::unique_lock lock(mutex_);
  stats_.busy_time += held;
  // One too many, or with another limit than is set now.
  const bool unfit = grown || alive_ > processes_ || process->memory_limit() != memory_;
  if (usable && !unfit) {
    idle_.push_back(std::move(process));
  } else {
    lock.unlock();
    process.reset();
    lock.lock();
    --alive_;
    ++(usable ? stats_.recycled : stats_.died);
  }
  release(database);
  changed_.notify_all();
}

PoolStats Pool::stats() const {
  std::lock_guard lock(mutex_);
  auto stats = stats_;
  stats.alive = alive_;
  stats.busy = alive_ - idle_.size();
  stats.waiting = waiting_.size();
  return stats;
}

}  // namespace divan::js
