// The pool of sandboxed JavaScript processes.
//
// Map, reduce and later filter and validate functions are strangers' code: they run in divan-js processes
// (js/sandbox), one call at a time in each. A process is started when all are busy, up to a number, and kept
// warm with the programs that it has compiled. One that dies, hangs, breaks the protocol or has grown is
// replaced.
//
// When a process dies of a batch, the batch is tried once more in a fresh one (the machine may have been
// short of memory), and then document by document, so that only the document that kills fails. A document
// that has used up its time is not tried once more: the process says which one it was, and those before it
// are run again. So a hostile function costs its own index time, and nobody else anything.
//
// When all processes are busy, the next one that is free goes to the database that has the fewest of them,
// and a batch is short (Limits::batch). Urgent calls have two further processes, in which a function runs for
// a moment only (Limits::urgent). One of these is for calls that somebody waits for, and for programs that
// are known to be quick; so functions that are slow, or many, do not delay them. Programs that took longer
// than a moment are remembered, and are not urgent for a while. The check of a design document that is being
// written has one more process. (turns.h)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/clock.h"
#include "divan/base/recent_keys.h"
#include "divan/js/answers.h"
#include "divan/js/log_rate_limiter.h"
#include "divan/js/process.h"
#include "divan/js/program.h"
#include "divan/js/reduce_limit.h"
#include "divan/js/requests.h"
#include "divan/js/result.h"
#include "divan/js/turns.h"

namespace divan::js {

struct PoolOptions {
  std::string binary;         ///< path of divan-js
  std::size_t processes = 0;  ///< most at once; 0: as many as processors
  std::size_t reserved = 1;   ///< further ones for trials, and as many for urgent calls (turns.h)
  std::size_t memory = std::size_t{256} << 20;  ///< bytes that one may use; at least 128 MiB
  std::size_t recycle = std::size_t{160}
                        << 20;              ///< resident bytes from which on one is replaced after a batch
  Duration wait = std::chrono::minutes(5);  ///< longest wait for a process when all are busy
  Duration margin =
      std::chrono::seconds(5);  ///< real time over its limits that a batch gets before it is killed

  Duration invocation = kDefaultInvocation;  ///< processor time of one call of a function
  ReduceLimit reduce_limit;
  double log_lines = 10;  ///< lines a second that a design document's functions may write to the log

  /// Takes what scripts write with log(), within `log_lines`, and a line about how many were left out. Called
  /// by the thread whose batch it was.
  std::function<void(const Function& function, std::string_view line)> log;
};

struct PoolStats {
  std::size_t alive = 0;    ///< processes now
  std::size_t busy = 0;     ///< of these
  std::size_t waiting = 0;  ///< calls that wait for a process now
  // Since the pool was made:
  std::uint64_t started = 0;
  std::uint64_t died = 0;      ///< ended or had to be killed
  std::uint64_t recycled = 0;  ///< had grown, or made room for a fresh one
  std::uint64_t batches = 0;   ///< map and reduce requests that were answered
  std::uint64_t documents = 0;
  std::uint64_t groups = 0;
  std::uint64_t failures = 0;  ///< calls of functions that failed, of whatever kind
  Duration busy_time{};        ///< that calls have held processes, in all
};

/// A call that has a process.
struct RunningCall {
  Owner owner;
  Purpose purpose{};
  pid_t pid = -1;
  MonotonicTime since;
  bool nice = false;  ///< the process is nice to others
};

/// Thread-safe. Must outlive its calls. All calls block; each throws os_process_error (500) if divan-js
/// cannot be started and service_unavailable (503) if no process was free in time.
class Pool {
 public:
  Pool(PoolOptions options, const Clock& clock);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Ends all calls, also those to come, with service_unavailable (503), and the processes that they hold.
  void stop();

  /// Sets what may change while it runs: processes, memory (which needs fresh processes: busy ones go on with
  /// what they have until they are free), invocation, reduce_limit and log_lines. The rest of `options` is
  /// not looked at.
  void configure(const PoolOptions& options);

  /// Throws compilation_error (400), in CouchDB's words, unless the source is that of a function. `kind` is
  /// "map" or "reduce"; `lib` as in Program.
  void check(const Function& function, std::string_view kind, std::string_view view,
             const std::string& lib = {});

  /// Calls all functions with each document (JSON texts). May do fewer documents than it was given, from the
  /// first on, but at least one: when limits.batch is over, or when they or what was emitted are too much for
  /// one message. Throws os_process_error if the process dies of compiling the functions.
  MapResult map(const Program& program, std::span<const std::string_view> documents,
                const Limits& limits = {});

  /// Calls the function once a group: with keys as [[key, id], ...] and values, or, for a rereduce, with null
  /// and values. Answers one reduction a group; a Failure for one that exceeds the limit of reductions.
  std::vector<Reduction> reduce(const Function& function, bool rereduce, std::span<const ReduceGroup> groups,
                                const Limits& limits = {});

  /// The processor time that is set now for one call of a function.
  Duration invocation() const;
  /// The limit of reductions that is set now.
  ReduceLimit reduce_limit() const;

  /// Writes a line about one of the function's failures to the server's log, as one of `log_lines`.
  void log_failure(const Function& function, std::string_view line);

  PoolStats stats() const;
  /// The most processes at once that serve background calls, and those reserved for others.
  std::size_t processes() const;
  std::size_t reserved() const { return turns_.reserved(Purpose::urgent); }
  /// Who has the busy processes.
  std::vector<RunningCall> running() const;

 private:
  class Lease;
  // Why there was no answer.
  struct Death {
    Failure failure{};
    bool loading = false;  // the process did not get as far as the request
    // The document or group in which a function ran out of time and could not be interrupted.
    std::optional<std::size_t> stuck_in;
  };
  // Which process a call wants. An idle one can have died unseen.
  enum class Choice { any, fresh };
  // What is asked of a process that has the program loaded in this slot.
  using MakeRequest = std::function<std::string(std::uint32_t slot)>;
  // Reads the answer; false if it is not one.
  using ReadAnswer = std::function<bool(std::string answer, Log& log)>;

  bool run(const Program& program, Choice choice, const MakeRequest& request, const ReadAnswer& read,
           const Limits& limits, Death& death);
  bool ask(Lease& lease, const std::string& request, const ReadAnswer& read, const Program& program,
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

  // What an urgent request gets at once; nullopt if it took too long.
  template <class Result, class Attempt>
  std::optional<Result> try_urgent(const Program& program, std::size_t count, const Limits& limits,
                                   const Attempt& attempt);
  bool is_slow(const std::string& program_key) const;
  void note_pace(const std::string& program_key, bool is_slow);
  Purpose purpose_of(const std::string& program_key, const Limits& limits) const;

  std::unique_ptr<Process> acquire(std::string_view program_key, const Owner& owner, Choice choice,
                                   Purpose purpose, const std::stop_token& stop, Turns::Call& call);
  std::unique_ptr<Process> take_process(std::string_view program_key, Choice choice, Purpose& purpose,
                                        std::vector<std::unique_ptr<Process>>& ended);
  std::size_t count_not_nice() const;
  std::unique_ptr<Process> take_idle(std::string_view program_key, Purpose purpose);
  std::vector<std::unique_ptr<Process>> take_ended();
  std::unique_ptr<Process> start(std::size_t memory, Purpose purpose, const std::stop_token& stop);
  void give_back(std::unique_ptr<Process> process, const Turns::Call& call, bool usable, Duration held);
  void refuse_if_ended(const std::stop_token& stop) const;
  Limits with_invocation(Limits limits) const;
  void write_log(const Program& program, const Log& log);
  std::optional<std::uint64_t> may_log(const Owner& owner);

  const PoolOptions options_;
  const Clock& clock_;
  const int stop_fd_;  // readable from stop() on

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::size_t memory_;
  Duration invocation_;
  ReduceLimit reduce_limit_;
  LogRateLimiter budget_;
  std::vector<std::unique_ptr<Process>> idle_;  // the one that was used last at the end
  std::size_t alive_ = 0;
  Turns turns_;
  std::map<std::uint64_t, RunningCall> running_;  // by ticket
  RecentKeys slow_;                               // programs that are not urgent
  RecentKeys quick_;                              // programs that were quick in an urgent call
  bool warned_ = false;                           // that a process has no filter
  PoolStats stats_;                               // the counts since the start
};

}  // namespace divan::js
