// The compiled functions of a design document, with the global object that they share.
#pragma once

#include <jsapi.h>

#include <optional>
#include <vector>

#include "divan/js/protocol.h"
#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Used by the engine's thread only.
class Program {
 public:
  /// Compiles within a batch of the engine's watchdog. Functions that do not compile are stored as failures.
  Program(Engine& engine, const LoadRequest& request);

  std::size_t size() const { return failures_.size(); }
  JSObject* global() const { return global_; }

  /// The compilation failure of function `index`, or null.
  const Failure* failure(std::size_t index) const { return failures_[index] ? &*failures_[index] : nullptr; }
  JS::HandleValue function(std::size_t index) { return functions_[index]; }
  /// The object in which require() finds modules, frozen; undefined if there is none.
  JS::HandleValue root() { return root_; }

  /// Calls the program's only function by the driver's function `name` (driver.h), in the program's realm,
  /// which must be current. Returns false, with an exception pending or the script stopped, on failure.
  bool drive(const char* name, JS::HandleValue arguments, JS::HandleValue rows, bool more,
             JS::MutableHandleValue result);

 private:
  std::optional<Failure> define_root(std::string_view root);
  std::optional<Failure> compile(const LoadRequest::Source& source, JS::MutableHandleValue function);

  Engine& engine_;
  JS::PersistentRootedObject global_;
  JS::PersistentRootedVector<JS::Value> functions_;
  JS::PersistentRootedValue root_;
  JS::PersistentRootedValue driver_;  // undefined until it is needed
  std::vector<std::optional<Failure>> failures_;
};

}  // namespace divan::js::sandbox
