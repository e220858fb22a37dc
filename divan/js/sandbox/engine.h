// The JavaScript engine of this process, and what its functions emit and log while a request runs.
//
// There are no promise jobs, no WebAssembly and no shared memory. The time zone is UTC, since a view's rows
// must not depend on the machine.
#pragma once

#include <jsapi.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "divan/js/sandbox/watchdog.h"

namespace divan::js::sandbox {

class RowPages;

/// The file name of our own scripts.
inline constexpr const char* kOwnFile = "divan";

/// Runs a script in the current realm; `file` is its name in messages and stacks. Returns false, with an
/// exception pending or the script stopped, on failure.
bool evaluate(JSContext* context, const char* file, std::string_view text, JS::MutableHandleValue result);

/// A singleton of the process, created and used by one thread.
class Engine {
 public:
  /// `heap_bytes` limits the engine's objects; memory that they allocate elsewhere counts for the process's
  /// limit.
  explicit Engine(std::size_t heap_bytes);
  ~Engine() = delete;  // the process exits without destroying it
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  static Engine& of(JSContext* context) { return *static_cast<Engine*>(JS_GetContextPrivate(context)); }

  JSContext* context() const { return context_; }
  Watchdog& watchdog() { return *watchdog_; }

  /// The keys and values, alternating, that the running map function has emitted. As in CouchDB they are
  /// serialized when it has returned: later changes to an emitted object are visible.
  JS::PersistentRootedVector<JS::Value>& emitted() { return *emitted_; }
  /// emit() has no effect while this is off.
  void set_emitting(bool on) { emitting_ = on; }
  bool emitting() const { return emitting_; }

  /// The rows of the list function that runs and reads them in pages; null if there is none.
  RowPages* row_pages() const { return row_pages_; }
  void set_row_pages(RowPages* pages) { row_pages_ = pages; }

  /// Stops the script (it cannot catch this) because it has emitted or returned too much. Returns false, for
  /// use as a callback's result.
  bool stop_as_too_large() {
    too_large_ = true;
    return false;
  }
  /// Returns true if that happened since the last call.
  bool take_too_large() { return std::exchange(too_large_, false); }

  /// Starts recording the lines of log() for a request.
  void begin_log() {
    log_.clear();
    log_lines_ = log_dropped_ = 0;
  }
  /// The following lines come from this function of the program.
  void log_for(std::size_t function) { log_function_ = function; }
  /// Returns true, and counts the line as dropped, if the request has logged protocol::kMaxLogLines lines.
  bool refuse_log_line();
  void add_log_line(std::string_view line);
  void put_log(std::string& response) const;

 private:
  static bool on_interrupt(JSContext* context);

  JSContext* context_;
  Watchdog* watchdog_;
  JS::PersistentRootedVector<JS::Value>* emitted_;
  bool emitting_ = false;
  bool too_large_ = false;
  RowPages* row_pages_ = nullptr;

  std::string log_;  // encoded lines
  std::size_t log_function_ = 0;
  std::size_t log_lines_ = 0;
  std::size_t log_dropped_ = 0;
};

}  // namespace divan::js::sandbox
