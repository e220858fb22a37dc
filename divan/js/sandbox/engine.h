// The JavaScript engine of this process, and what a script meets besides the language: emit, log, sum, toJSON
// and isArray, as in CouchDB (https://docs.couchdb.org/en/stable/query-server/javascript.html).
//
// Each program has a global object of its own, so that what it does to JSON, emit or Array.prototype stays
// with it. There are no promise jobs, no WebAssembly, no shared memory, and the time zone is UTC wherever
// this runs: a view's rows must not depend on the machine.
#pragma once

#include <jsapi.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "divan/js/sandbox/watchdog.h"

namespace divan::js::sandbox {

/// The file name of our own scripts.
inline constexpr const char* kOwnFile = "divan";

/// Runs a script in the current realm; `file` is its name in messages and stacks. False, with an exception
/// pending or the script stopped, if that fails.
bool evaluate(JSContext* context, const char* file, std::string_view text, JS::MutableHandleValue result);

/// One for a process, made and used by one thread.
class Engine {
 public:
  /// `heap_bytes` limits the engine's own objects; what they allocate besides is for the process's limit.
  explicit Engine(std::size_t heap_bytes);
  ~Engine() = delete;  // the process exits without taking it down
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  static Engine& of(JSContext* context) { return *static_cast<Engine*>(JS_GetContextPrivate(context)); }

  JSContext* context() const { return context_; }
  Watchdog& watchdog() { return *watchdog_; }

  /// A new global object with the functions above; null, with an exception pending, when memory is short.
  JSObject* new_global();

  /// The keys and values, in turn, that the running map function has emitted. They are written as JSON when
  /// it has returned, as in CouchDB: a change to an emitted object shows.
  JS::PersistentRootedVector<JS::Value>& emitted() { return *emitted_; }
  /// emit() is without effect otherwise.
  void set_emitting(bool on) { emitting_ = on; }

  /// Stops the script for good, past any `catch`, for having emitted or returned too much. Answers false,
  /// which is what the engine's callbacks return then.
  bool stop_as_too_large() {
    too_large_ = true;
    return false;
  }
  /// Returns true if that happened since this was asked last.
  bool take_too_large() { return std::exchange(too_large_, false); }

  /// What log() was called with while a request ran.
  void begin_log() {
    log_.clear();
    log_lines_ = log_dropped_ = 0;
  }
  /// Lines that follow come from this function of the program.
  void log_for(std::size_t function) { log_function_ = function; }
  void put_log(std::string& answer) const;

 private:
  static bool emit(JSContext* context, unsigned argc, JS::Value* vp);
  static bool log(JSContext* context, unsigned argc, JS::Value* vp);
  static bool on_interrupt(JSContext* context);
  void define_functions(JS::HandleObject global);

  JSContext* context_;
  Watchdog* watchdog_;
  JS::PersistentRootedVector<JS::Value>* emitted_;
  bool emitting_ = false;
  bool too_large_ = false;

  std::string log_;  // encoded lines
  std::size_t log_function_ = 0;
  std::size_t log_lines_ = 0;
  std::size_t log_dropped_ = 0;
};

}  // namespace divan::js::sandbox
