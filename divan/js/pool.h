// The pool of sandboxed JavaScript processes.
//
// The functions of design documents are untrusted code: they run in
// divan-js processes (js/sandbox), one call at a time in each. A process is started when all are busy, up to
// a limit, and is kept with the programs that it has compiled. A process that dies, hangs, violates the
// protocol or has grown is replaced.
//
// If a process dies during a batch, the batch is retried in a new one (the machine may have been short of
// memory), and then document by document, so that only the document that kills its process fails. A document
// that has exceeded its time limit is not retried: the process reports which one it was, and those before it
// are run again. So a malicious function delays only its own index.
//
// If all processes are busy, the next free one is given to the database that holds the fewest, and batches
// are short (Limits::batch). Urgent calls have two additional processes, in which a function has only a short
// time (Limits::urgent). One of these is reserved for calls that a client waits for, and for programs that
// are known to be fast, so that slow or many functions do not delay them. Programs that exceeded the short
// time are not urgent for a while. The check of a design document that is being written has one more process.
// See process_scheduler.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/clock.h"
#include "divan/base/recent_keys.h"
#include "divan/js/log_rate_limiter.h"
#include "divan/js/process.h"
#include "divan/js/process_scheduler.h"
#include "divan/js/program.h"
#include "divan/js/reduce_limit.h"
#include "divan/js/requests.h"
#include "divan/js/responses.h"
#include "divan/js/result.h"

namespace divan::js {

struct PoolOptions {
  std::string binary;                            ///< path of divan-js
  std::size_t processes = 0;                     ///< the most at a time; 0: one per processor
  std::size_t reserved = 1;                      ///< additional ones for trials, and as many for urgent calls
  std::size_t memory = std::size_t{256} << 20;   ///< memory limit of a process in bytes; at least 128 MiB
  std::size_t recycle = std::size_t{160} << 20;  ///< resident bytes above which a process is replaced
  Duration wait = std::chrono::minutes(5);       ///< longest wait for a free process
  Duration margin = std::chrono::seconds(5);  ///< real time beyond its limits after which a batch is killed

  Duration invocation = kDefaultInvocation;  ///< processor time of one call of a function
  ReduceLimit reduce_limit;
  double log_lines = 10;  ///< log lines per second of a design document's functions

  /// Receives the lines that scripts write with log(), within `log_lines`, and a line that reports dropped
  /// lines. Called by the thread that called map(), reduce(), apply() or list().
  std::function<void(const Function& function, std::string_view line)> log;
};

struct PoolStats {
  std::size_t alive = 0;    ///< processes
  std::size_t busy = 0;     ///< of the processes
  std::size_t waiting = 0;  ///< calls that wait for a process
  // Since the pool was created:
  std::uint64_t started = 0;
  std::uint64_t died = 0;      ///< ended by themselves or were killed
  std::uint64_t recycled = 0;  ///< had grown, or were replaced by a new one
  std::uint64_t batches = 0;   ///< completed map, reduce, apply and list requests
  std::uint64_t documents = 0;
  std::uint64_t groups = 0;
  std::uint64_t applied = 0;   ///< calls by apply() and list()
  std::uint64_t failures = 0;  ///< failed calls of functions, of any kind
  Duration busy_time{};        ///< total time that calls held processes
};

/// A call that holds a process.
struct RunningCall {
  Owner owner;
  Purpose purpose{};
  pid_t pid = -1;
  MonotonicTime since;
  bool nice = false;  ///< the process runs with a positive niceness
};

/// Thread-safe. Must outlive its calls. All calls block; each throws os_process_error (500) if divan-js
/// cannot be started and service_unavailable (503) if no process was free in time. It has a condition
/// variable of its own, since many calls wait at the same time.
class Pool {
 public:
  Pool(PoolOptions options, const Clock& clock);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Ends all present and future calls with service_unavailable (503), and kills the processes that they
  /// hold.
  void stop();

  /// Changes the options that may change at run time: processes, memory (for new processes: a busy one keeps
  /// its limit until it is free), invocation, reduce_limit and log_lines. The other members of `options` are
  /// ignored.
  void configure(const PoolOptions& options);

  /// Ends all processes, those that are busy as soon as their calls have ended. Later calls get new ones.
  void replace_processes();

  /// Throws compilation_error (400), with CouchDB's text, unless the source is a function expression. `what`
  /// names it, such as "map function in the 'by-date' view"; `root` as in Program.
  void check(const Function& function, std::string_view what, const std::string& root = {});

  /// Calls all functions with each document (JSON texts). May process only the first documents, but at least
  /// one: when limits.batch has elapsed, or when the documents or the output do not fit one message. Throws
  /// os_process_error if the process dies while it compiles the functions.
  MapResult map(const Program& program, std::span<const std::string_view> documents,
                const Limits& limits = {});

  /// Calls the function once per group: with keys as [[key, id], ...] and values, or, for a rereduce, with
  /// null and values. Returns one reduction per group; a Failure for one that exceeds the reduce limit.
  std::vector<Reduction> reduce(const Function& function, bool rereduce, std::span<const ReduceGroup> groups,
                                const Limits& limits = {});

  /// Calls the function of a program that has only one, with `program.root` as `this`. Like map(), it may
  /// make only the first calls. The results are by `result`.
  std::vector<Outcome> apply(const Program& program, ResultKind result, std::span<const Arguments> calls,
                             const Limits& limits = {});

  /// Rows for a list function: a JSON array.
  struct ListRows {
    std::string rows = "[]";
    bool is_last = false;
  };
  /// Receives what a list function has sent (as ResultKind::list), and returns further rows if it wants some;
  /// otherwise its result is ignored. If it throws, so does list().
  using ListStep = std::function<ListRows(std::string output, bool wants_rows)>;
  /// Calls a list function with these arguments (a JSON array) and first rows, which are not all: `step` is
  /// called for more, and whenever much output waits. Holds a process meanwhile, in addition to those of
  /// other calls, so the caller must limit the number of lists at a time, and the time of each: only a step
  /// has the limits of a call. Returns the last output, or the failure.
  Outcome list(const Program& program, std::string_view arguments, std::string_view rows,
               const ListStep& step, const Limits& limits = {});

  /// The current limit of processor time for one call of a function.
  Duration invocation() const;
  /// The current reduce limit.
  ReduceLimit reduce_limit() const;

  /// Writes a line about a failure of the function to the server's log. Counts for `log_lines`.
  void log_failure(const Function& function, std::string_view line);

  PoolStats stats() const;
  /// The most processes at a time for background calls, and the number of additional ones for trials and
  /// urgent calls.
  std::size_t processes() const;
  std::size_t reserved() const { return scheduler_.reserved(Purpose::urgent); }
  /// The calls that hold processes now.
  std::vector<RunningCall> running() const;

 private:
  class Lease;
  // The reason why there is no usable response.
  struct Death {
    Failure failure{};
    bool loading = false;  // it happened while the program was loaded, before the request
    // The document or group in which a function exceeded its time limit and could not be interrupted.
    std::optional<std::size_t> stuck_in;
  };
  // The process that a call requires. An idle one can have died undetected.
  enum class Choice { any, fresh };
  // Builds the request to a process that has the program loaded in this slot.
  using MakeRequest = std::function<std::string(std::uint32_t slot)>;
  // Parses the response; returns false if it is malformed.
  using ReadResponse = std::function<bool(std::string response, Log& log)>;
  // The same for a batch of some of the items that a call was given: from `first` on, `count` of them.
  using MakeBatch = std::function<std::string(std::uint32_t slot, std::size_t first, std::size_t count,
                                              const Limits& limits)>;
  using ParseBatch = std::function<std::optional<std::vector<Outcome>>(std::string_view response,
                                                                       std::size_t count, Log& log)>;

  static Failure protocol_violation();
  bool run(const Program& program, Choice choice, const MakeRequest& request, const ReadResponse& read,
           const Limits& limits, Death& death);
  bool load(Lease& lease, const Program& program, std::uint32_t& slot, const Limits& limits, Death& death);
  bool call(Lease& lease, const std::string& request, const ReadResponse& read, const Program& program,
            const Limits& limits, Death& death);
  template <class Result, class Attempt>
  Result do_batch(const Program& program, std::size_t count, Result none, Limits limits,
                  const Attempt& attempt);
  template <class Result, class Attempt>
  Result run_isolating_failures(std::size_t count, Result result, const Limits& limits,
                                const Attempt& attempt) const;
  void enforce(const ReduceLimit& limit, const Function& function, std::uint64_t bytes_in,
               Reduction& reduction);
  std::vector<Reduction> reduce_some(const Program& program, bool rereduce,
                                     std::span<const ReduceGroup> groups, const Limits& limits);
  std::vector<Outcome> call_for_each(const Program& program, std::size_t count, const Limits& limits,
                                     const MakeBatch& request, const ParseBatch& parse);

  // Runs an urgent request within its short limits; nullopt if it took too long.
  template <class Result, class Attempt>
  std::optional<Result> try_urgent(const Program& program, std::size_t count, const Limits& limits,
                                   const Attempt& attempt);
  bool is_slow(const std::string& program_key) const;
  bool is_quick(const std::string& program_key) const;
  void note_pace(const std::string& program_key, bool is_slow);
  Purpose purpose_of(const std::string& program_key, const Limits& limits) const;

  std::unique_ptr<Process> acquire(std::string_view program_key, const Owner& owner, Choice choice,
                                   Purpose purpose, const std::stop_token& stop,
                                   ProcessScheduler::Call& call);
  std::unique_ptr<Process> take_process(std::string_view program_key, Choice choice, Purpose& purpose,
                                        std::vector<std::unique_ptr<Process>>& ended);
  std::size_t count_normal_priority() const;
  std::unique_ptr<Process> take_idle(std::string_view program_key, Purpose purpose);
  std::vector<std::unique_ptr<Process>> take_ended();
  std::vector<std::unique_ptr<Process>> take_all_idle();
  std::unique_ptr<Process> start(std::size_t memory, Purpose purpose, const std::stop_token& stop);
  void release(std::unique_ptr<Process> process, const ProcessScheduler::Call& call, bool usable,
               Duration held);
  void refuse_if_ended(const std::stop_token& stop) const;
  Limits with_invocation(Limits limits) const;
  void write_log(const Program& program, const Log& log);
  std::optional<std::uint64_t> may_log(const Owner& owner);

  const PoolOptions options_;
  const Clock& clock_;
  const int stop_fd_;  // readable from stop() on

  mutable Mutex mutex_{MutexRank::js_pool, "Pool::mutex_"};  // protects the members below
  ConditionVariable changed_;
  bool stopping_ = false;
  std::size_t memory_;
  Duration invocation_;
  ReduceLimit reduce_limit_;
  LogRateLimiter log_limiter_;
  std::vector<std::unique_ptr<Process>> idle_;  // the most recently used at the end
  std::size_t alive_ = 0;
  MonotonicTime replaced_at_ = MonotonicTime::min();  // calls that began before leave no process
  ProcessScheduler scheduler_;
  std::map<std::uint64_t, RunningCall> running_;  // by call id
  RecentKeys slow_;                               // programs that exceeded an urgent call's time
  RecentKeys quick_;                              // programs that were fast in an urgent call
  bool warned_ = false;                           // whether the missing filter was logged
  PoolStats stats_;                               // the counters
};

}  // namespace divan::js
