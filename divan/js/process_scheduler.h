// Which waiting call gets the next JavaScript process.
//
// Calls have a purpose. Background work may occupy `processes` of the processes. Short calls that nobody
// waits for may also use `reserved` further ones; those that somebody waits for, or whose functions are known
// to be quick, as many again; and the check of a design document one more. So an urgent call waits neither
// for background work, nor for functions that turn out to be slow.
//
// Among calls that may have a process, the call of the database with the fewest processes is next; among
// these the oldest.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace divan::js {

enum class Purpose : std::uint8_t {
  background,  ///< an index build: may take seconds
  trial,       ///< a short call, unless its functions turn out to be slow; nobody waits for it
  urgent,      ///< a short call that somebody waits for, or of functions that are known to be quick
  check,       ///< the check of a design document that is being written
};

/// Not thread-safe: the pool's mutex guards it.
class Turns {
 public:
  struct Call {
    std::uint64_t ticket = 0;
    std::int64_t database = 0;
    Purpose purpose{};
  };

  Turns(std::size_t processes, std::size_t reserved) : processes_(processes), reserved_(reserved) {}

  std::size_t processes() const { return processes_; }
  void set_processes(std::size_t processes) { processes_ = processes; }
  /// The most processes that stay when nothing is to be done.
  std::size_t kept() const { return processes_ + 2 * reserved_; }
  /// Those that calls of this purpose have for themselves and for more urgent ones.
  std::size_t reserved(Purpose purpose) const;
  /// The most processes that stay when the call ends: those of kept() and one for each check that goes on. A
  /// check has a process above that number, and the others would start and end one for each call beside it.
  std::size_t kept_after(const Call& ending) const;

  /// A new call, which waits.
  Call join(std::int64_t database, Purpose purpose);
  /// The call does not wait any more.
  void leave(const Call& call);
  /// Returns true if a waiting call may have a process now.
  bool is_next(const Call& call) const;
  /// The call has a process, until end().
  void begin(const Call& call);
  void end(const Call& call);

  std::size_t waiting() const { return waiting_.size(); }

 private:
  bool may_begin(Purpose purpose) const;
  std::size_t held(std::int64_t database) const;

  std::size_t processes_;
  const std::size_t reserved_;
  std::vector<Call> waiting_;
  std::uint64_t next_ticket_ = 0;
  std::array<std::size_t, 4> busy_{};         // by purpose
  std::map<std::int64_t, std::size_t> held_;  // processes by the database that has them
};

}  // namespace divan::js
