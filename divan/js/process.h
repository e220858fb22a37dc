// A divan-js child process.
//
// Its standard input and output are one end of a socket pair, so that writing to a dead process is an error
// instead of a signal. Its environment has only what its libraries need, and it has a process group of its
// own, so that Ctrl-C at a terminal does not signal it. Deadlines are in real time, since they wait for
// another process.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "divan/base/clock.h"
#include "divan/js/protocol.h"

namespace divan::js {

/// Not thread-safe. Destroying it kills the process and waits for its end.
class Process {
 public:
  /// Starts `binary` with a memory limit and waits for its hello. Throws os_process_error (500) if the hello
  /// does not arrive in time, or before `stop` is requested or `stop_fd` becomes readable.
  Process(const std::string& binary, std::size_t memory_bytes, int stop_fd = -1,
          const std::stop_token& stop = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Sends a frame and waits for the response's content for at most `limit`, or until `stop` is requested.
  /// Returns nullopt if the process ended, sent a malformed frame, or did not respond in time; it must not be
  /// used again then, and failure() returns the reason.
  std::optional<std::string> call(std::string_view frame, Duration limit, const std::stop_token& stop = {});

  /// The reason why call() returned nullopt: `timeout` or `crashed`.
  const Failure& failure() const { return failure_; }

  /// Returns true if the process has ended by itself.
  bool ended();

  /// Its resident memory in bytes; 0 if unknown.
  std::size_t resident_bytes() const;

  pid_t pid() const { return pid_; }
  std::size_t memory_limit() const { return memory_limit_; }
  /// Raises its niceness permanently.
  void make_nice();
  bool is_nice() const { return nice_; }
  /// Returns true if its system call filter is active.
  bool locked() const { return locked_; }

  /// The slot that holds the program of this key; nullopt if it is not loaded.
  std::optional<std::uint32_t> find(std::string_view program_key);
  /// Empties and returns the least recently used slot; it stays empty until fill().
  std::uint32_t empty_slot();
  void fill(std::uint32_t slot, std::string program_key);

 private:
  struct Slot {
    std::string program_key;
    std::uint64_t used = 0;  // 0: empty
  };

  void start(const std::string& binary, std::size_t memory_bytes, const std::stop_token& stop);
  bool send_all(std::string_view bytes, MonotonicTime deadline);
  bool receive_all(char* bytes, std::size_t size, MonotonicTime deadline);
  std::optional<std::string> receive_frame(MonotonicTime deadline);
  bool wait_for(short events, MonotonicTime deadline);
  void end();

  const std::size_t memory_limit_;
  const int stop_fd_;
  pid_t pid_ = -1;
  int socket_ = -1;
  int statm_ = -1;
  bool locked_ = false;
  bool nice_ = false;
  bool late_ = false;          // it was killed because it did not respond
  std::optional<int> status_;  // set once the process was reaped
  Failure failure_{};
  std::uint64_t uses_ = 0;
  std::array<Slot, protocol::kSlots> slots_;
};

}  // namespace divan::js
