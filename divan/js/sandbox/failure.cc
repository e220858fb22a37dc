#include "divan/js/sandbox/failure.h"

#include <js/ErrorReport.h>
#include <js/Exception.h>
#include <js/GCAPI.h>
#include <js/SavedFrameAPI.h>

#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

// An Error has its text ready; anything else that is thrown is shown as a string or as JSON, which may run
// code of the script, and fail.
std::string thrown_text(JSContext* context, JS::HandleValue thrown) {
  std::string text;
  if (thrown.isString()) {
    JS::RootedString string(context, thrown.toString());
    if (append_start(context, string, text, protocol::kMaxMessage)) return text;
  } else if (append_json(context, thrown, text, protocol::kMaxOutput)) {
    return text;
  }
  Engine::of(context).take_too_large();
  JS_ClearPendingException(context);
  return "an exception that cannot be shown";
}

bool is_error(JSContext* context, JS::HandleValue thrown) {
  if (!thrown.isObject()) return false;
  JS::RootedObject object(context, &thrown.toObject());
  return JS_ErrorFromException(context, object) != nullptr;
}

std::string exception_text(JSContext* context, const JS::ExceptionStack& exception) {
  std::string text;
  unsigned line = 0;
  JS::ErrorReportBuilder report(context);
  if (is_error(context, exception.exception()) &&
      report.init(context, exception, JS::ErrorReportBuilder::NoSideEffects)) {
    text = whole_characters(report.toStringResult().c_str(), protocol::kMaxMessage);
    line = report.report()->lineno;
  } else {
    JS_ClearPendingException(context);
    text = thrown_text(context, exception.exception());
    text.resize(whole_characters(text, protocol::kMaxMessage).size());
    if (exception.stack()) JS::GetSavedFrameLine(context, nullptr, exception.stack(), &line);
  }
  if (line > 0) text += " (line " + std::to_string(line) + ")";
  return text;
}

Failure timeout_failure() { return {FailureKind::timeout, "ran for longer than one call may"}; }

}  // namespace

Failure take_failure(Engine& engine) {
  JSContext* context = engine.context();
  if (engine.take_too_large()) {
    JS_ClearPendingException(context);
    return {FailureKind::too_large, "emitted, returned or logged more than one call may"};
  }
  if (!JS_IsExceptionPending(context)) {
    if (engine.watchdog().invocation_expired()) return timeout_failure();
    return {FailureKind::exception, "was stopped"};
  }
  if (JS_IsThrowingOutOfMemory(context)) {
    JS_ClearPendingException(context);
    return {FailureKind::out_of_memory, "needs more memory than there is"};
  }
  JS::ExceptionStack exception(context);
  if (!JS::StealPendingExceptionStack(context, &exception)) {
    JS_ClearPendingException(context);
    return {FailureKind::exception, "an exception that cannot be shown"};
  }
  auto text = exception_text(context, exception);
  if (engine.watchdog().invocation_expired()) return timeout_failure();
  return {FailureKind::exception, std::move(text)};
}

void Strikes::count(Engine& engine, const Failure& failure) {
  if (failure.kind != FailureKind::timeout && failure.kind != FailureKind::out_of_memory) return;
  ++count_;
  last_ = failure;
  JS_GC(engine.context());
}

}  // namespace divan::js::sandbox
