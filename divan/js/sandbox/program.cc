#include "divan/js/sandbox/program.h"

#include <js/Object.h>

#include <cstdlib>

#include "divan/js/sandbox/driver.h"
#include "divan/js/sandbox/failure.h"
#include "divan/js/sandbox/global.h"
#include "divan/js/sandbox/modules.h"

namespace divan::js::sandbox {
namespace {

// The source of a function is not a statement by itself (`function (doc) {}` requires a name), but it is one
// after "0,": the statement's value is then the function, and semicolons, comments and white space may
// follow.
constexpr std::string_view kBeforeSource = "0,";

}  // namespace

Program::Program(Engine& engine, const LoadRequest& request)
    : engine_(engine),
      global_(engine.context(), new_global(engine)),
      functions_(engine.context()),
      root_(engine.context()),
      driver_(engine.context()) {
  // Out of memory while no script runs: a new process may succeed.
  if (!global_ || !functions_.resize(request.functions.size())) std::abort();
  JSAutoRealm realm(engine.context(), global_);
  const auto no_root = define_root(request.root);
  for (std::size_t i = 0; i < request.functions.size(); ++i) {
    if (no_root) {
      failures_.push_back(no_root);
      continue;
    }
    engine.log_for(i);
    engine.watchdog().begin_invocation();
    failures_.push_back(compile(request.functions[i], functions_[i]));
    engine.watchdog().end_invocation();
  }
}

std::optional<Failure> Program::define_root(std::string_view root) {
  if (root.empty()) return std::nullopt;
  engine_.watchdog().begin_invocation();
  std::optional<Failure> failure;
  if (!define_require(engine_.context(), root, &root_)) {
    failure = take_failure(engine_);
    failure->kind = FailureKind::compilation;
    failure->message.insert(0, "the modules: ");
  }
  engine_.watchdog().end_invocation();
  return failure;
}

bool Program::drive(const char* name, JS::HandleValue arguments, JS::HandleValue rows, bool more,
                    JS::MutableHandleValue result) {
  JSContext* context = engine_.context();
  if (driver_.isUndefined() && !define_driver(context, &driver_)) return false;
  JS::RootedObject driver(context, &driver_.toObject());
  JS::RootedValueArray<5> all(context);
  all[0].set(functions_[0]);
  all[1].set(root_);
  all[2].set(arguments);
  all[3].set(rows);
  all[4].setBoolean(more);
  return JS_CallFunctionName(context, driver, name, all, result);
}

std::optional<Failure> Program::compile(const LoadRequest::Source& source, JS::MutableHandleValue function) {
  const std::string name(source.name);
  const auto text = std::string(kBeforeSource).append(source.text);
  if (!evaluate(engine_.context(), name.c_str(), text, function)) {
    auto failure = take_failure(engine_);
    failure.kind = FailureKind::compilation;
    return failure;
  }
  if (function.isObject() && JS::IsCallable(&function.toObject())) return std::nullopt;
  return Failure{FailureKind::compilation, "Expression does not eval to a function."};
}

}  // namespace divan::js::sandbox
