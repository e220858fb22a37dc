// Decides which waiting call gets the next JavaScript process.
//
// Each call has a purpose. Background work may hold `processes` processes. Short calls without a waiting
// client (trials) may use `reserved` additional ones; calls with a waiting client, or of functions that are
// known to be fast, another `reserved`; and the check of a design document one more. So an urgent call waits
// neither for background work nor for functions that turn out to be slow. A list function that reads its rows
// in pages holds its process meanwhile, and the rows may need another process (for a reduction): it has a
// process in addition to all others, and the caller limits how many run at a time.
//
// Among the calls that may have a process, that of the database with the fewest processes is next; among
// these the oldest.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace divan::js {

enum class Purpose : std::uint8_t {
  background,  ///< an index build: may take seconds
  trial,       ///< expected to be short, without a waiting client
  urgent,      ///< short, with a waiting client or of functions known to be fast
  check,       ///< the check of a design document that is being written
  list,        ///< a list function that reads its rows in pages: may take minutes
};

/// Not thread-safe: the pool's mutex guards it.
class ProcessScheduler {
 public:
  struct Call {
    std::uint64_t id = 0;
    std::int64_t database = 0;
    Purpose purpose{};
  };

  ProcessScheduler(std::size_t processes, std::size_t reserved)
      : processes_(processes), reserved_(reserved) {}

  std::size_t processes() const { return processes_; }
  void set_processes(std::size_t processes) { processes_ = processes; }
  /// The most processes that are kept while idle.
  std::size_t kept() const { return processes_ + 2 * reserved_; }
  /// The number of processes, in addition to processes(), that calls of this purpose may use.
  std::size_t reserved(Purpose purpose) const;
  /// The most processes that are kept when the call ends: kept(), and one for each other check and list that
  /// runs. Without the latter, each call during a check would start and end a process, since the check's
  /// process exceeds kept().
  std::size_t kept_after(const Call& ending) const;

  /// Adds a waiting call.
  Call enqueue(std::int64_t database, Purpose purpose);
  /// Removes a waiting call.
  void dequeue(const Call& call);
  /// Returns true if the waiting call may have a process now.
  bool is_next(const Call& call) const;
  /// The call holds a process until end().
  void begin(const Call& call);
  void end(const Call& call);

  std::size_t waiting() const { return waiting_.size(); }

 private:
  bool may_begin(Purpose purpose) const;
  std::size_t held(std::int64_t database) const;

  std::size_t processes_;
  const std::size_t reserved_;
  std::vector<Call> waiting_;
  std::uint64_t next_id_ = 0;
  std::array<std::size_t, 5> busy_{};         // by purpose
  std::map<std::int64_t, std::size_t> held_;  // number of processes by database
};

}  // namespace divan::js
