#include "divan/js/sandbox/failure.h"

#include <js/Array.h>
#include <js/ErrorReport.h>
#include <js/Exception.h>
#include <js/GCAPI.h>
#include <js/SavedFrameAPI.h>

#include "divan/js/sandbox/hints.h"
#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

constexpr std::string_view kModulePrefix = "module ";
constexpr std::size_t kMaxFileName = 100;

// Functions of design documents throw ["error", name, reason], as in CouchDB. Formatted as "name: reason".
bool append_named_error(JSContext* context, JS::HandleValue thrown, std::string& text) {
  bool is_array = false;
  std::uint32_t length = 0;
  if (!JS::IsArrayObject(context, thrown, &is_array) || !is_array) return false;
  JS::RootedObject array(context, &thrown.toObject());
  if (!JS::GetArrayLength(context, array, &length) || length != 3) return false;
  for (std::uint32_t i = 0; i < length; ++i) {
    JS::RootedValue part(context);
    if (!JS_GetElement(context, array, i, &part) || !part.isString()) return false;
    if (i == 0) continue;
    JS::RootedString string(context, part.toString());
    if (!append_start(context, string, text, protocol::kMaxMessage)) return false;
    if (i == 1) text += ": ";
  }
  return true;
}

// An Error has a text; any other thrown value is formatted as a string or as JSON, which may run code of the
// script, and fail.
std::string thrown_text(JSContext* context, JS::HandleValue thrown) {
  std::string text;
  if (thrown.isString()) {
    JS::RootedString string(context, thrown.toString());
    if (append_start(context, string, text, protocol::kMaxMessage)) return text;
  } else {
    if (append_named_error(context, thrown, text)) return text;
    text.clear();
    const bool expired = Engine::of(context).watchdog().invocation_expired();
    if (!expired && append_json(context, thrown, text, protocol::kMaxOutput)) return text;
  }
  Engine::of(context).take_too_large();
  JS_ClearPendingException(context);
  return "an exception that cannot be converted to text";
}

bool is_error(JSContext* context, JS::HandleValue thrown) {
  if (!thrown.isObject()) return false;
  JS::RootedObject object(context, &thrown.toObject());
  return JS_ErrorFromException(context, object) != nullptr;
}

// The location where a script threw: for our own functions, that of their caller.
void find_thrower(JSContext* context, JS::HandleObject stack, unsigned& line, std::string& file) {
  JS::RootedObject frame(context, stack);
  while (frame) {
    JS::RootedString source(context);
    if (JS::GetSavedFrameSource(context, nullptr, frame, &source) != JS::SavedFrameResult::Ok) return;
    file.clear();
    if (!append_start(context, source, file, kMaxFileName)) break;
    if (file != kOwnFile) {
      JS::GetSavedFrameLine(context, nullptr, frame, &line);
      return;
    }
    JS::RootedObject parent(context);
    if (JS::GetSavedFrameParent(context, nullptr, frame, &parent) != JS::SavedFrameResult::Ok) return;
    frame = parent;
  }
  JS_ClearPendingException(context);
}

// The line's ASCII part, which is sufficient for hints.
std::string source_line(const JSErrorReport& report) {
  std::string line;
  for (std::size_t i = 0; i < report.linebufLength(); ++i) {
    const auto c = report.linebuf()[i];
    line += c < 0x80 ? static_cast<char>(c) : '?';
  }
  return line;
}

// The name of a file: a C string in SpiderMonkey 102, a class in newer versions.
[[maybe_unused]] const char* c_str(const char* name) { return name; }
[[maybe_unused]] const char* c_str(JS::ConstUTF8CharsZ name) { return name.c_str(); }

std::string exception_text(JSContext* context, const JS::ExceptionStack& exception) {
  std::string text;
  std::string file;
  std::string_view advice;
  unsigned line = 0;
  JS::ErrorReportBuilder report(context);
  if (is_error(context, exception.exception()) &&
      report.init(context, exception, JS::ErrorReportBuilder::NoSideEffects)) {
    text = whole_characters(report.toStringResult().c_str(), protocol::kMaxMessage);
    line = report.report()->lineno;
    if (report.report()->filename) file = c_str(report.report()->filename);
    advice = hint(text, source_line(*report.report()), report.report()->tokenOffset());
  } else {
    JS_ClearPendingException(context);
    text = thrown_text(context, exception.exception());
    text.resize(whole_characters(text, protocol::kMaxMessage).size());
    find_thrower(context, exception.stack(), line, file);
  }
  if (line > 0) {
    text += " (line " + std::to_string(line);
    // Only modules are named here: the caller names the function.
    if (file.starts_with(kModulePrefix)) text.append(" of ").append(whole_characters(file, kMaxFileName));
    text += ')';
  }
  if (!advice.empty()) text.append(" ").append(advice);
  return text;
}

Failure timeout_failure() { return {FailureKind::timeout, "exceeded the time limit of one call"}; }

}  // namespace

Failure take_failure(Engine& engine) {
  JSContext* context = engine.context();
  if (engine.take_too_large()) {
    JS_ClearPendingException(context);
    return {FailureKind::too_large, "emitted, returned or logged more than the limit of one call"};
  }
  if (!JS_IsExceptionPending(context)) {
    if (engine.watchdog().invocation_expired()) return timeout_failure();
    return {FailureKind::exception, "was stopped"};
  }
  if (JS_IsThrowingOutOfMemory(context)) {
    JS_ClearPendingException(context);
    return {FailureKind::out_of_memory, "exceeded the memory limit"};
  }
  JS::ExceptionStack exception(context);
  if (!JS::StealPendingExceptionStack(context, &exception)) {
    JS_ClearPendingException(context);
    return {FailureKind::exception, "an exception that cannot be converted to text"};
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
