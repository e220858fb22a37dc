#include "divan/js/sandbox/applier.h"

#include <js/Array.h>
#include <js/CallAndConstruct.h>
#include <js/Conversions.h>
#include <js/Exception.h>

#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {
namespace {

// Appends the elements of an array.
bool append_elements(JSContext* context, JS::HandleValue value, JS::RootedValueVector& elements) {
  bool is_array = false;
  if (!JS::IsArrayObject(context, value, &is_array)) return false;
  if (!is_array) {
    JS_ReportErrorASCII(context, "the arguments are not an array");
    return false;
  }
  JS::RootedObject array(context, &value.toObject());
  std::uint32_t length = 0;
  if (!JS::GetArrayLength(context, array, &length)) return false;
  for (std::uint32_t i = 0; i < length; ++i) {
    JS::RootedValue element(context);
    if (!JS_GetElement(context, array, i, &element)) return false;
    if (!elements.append(element)) return false;
  }
  return true;
}

// Returns true if the property exists and is true for JavaScript.
bool has(JSContext* context, JS::HandleObject object, const char* name, bool& result) {
  JS::RootedValue value(context);
  if (!JS_GetProperty(context, object, name, &value)) return false;
  result = JS::ToBoolean(value);
  return true;
}

// As in CouchDB, an Error is what has a name and a stack. Returns false if that cannot be found out.
bool is_error(JSContext* context, JS::HandleValue thrown, bool& result) {
  result = false;
  if (!thrown.isObject()) return true;
  JS::RootedObject object(context, &thrown.toObject());
  bool has_name = false, has_stack = false;
  if (!has(context, object, "name", has_name) || !has(context, object, "stack", has_stack)) return false;
  result = has_name && has_stack;
  return true;
}

// The function of the driver for a kind of result; null if the driver is not used.
const char* driver_function(ResultKind result) {
  switch (result) {
    case ResultKind::show: return "show";
    case ResultKind::list: return "list";
    case ResultKind::call: return "call";
    default: return nullptr;
  }
}

}  // namespace

bool Applier::apply(const ApplyRequest::Call& call) {
  return outcomes_.append([&](std::string& out) { return run(call, out); });
}

bool Applier::run(const ApplyRequest::Call& call, std::string& out) {
  JSContext* context = engine_.context();
  JS::RootedValue first(context);
  if (!parse_json(context, call.first, &first)) return false;
  if (!call.last.empty() && !parse_json(context, call.last, &last_)) return false;
  JS::RootedValue result(context);
  if (const char* const name = driver_function(result_)) {
    return program_.drive(name, first, last_, false, &result) &&
           put_json(context, result, out, out.size() + protocol::kMaxOutput);
  }
  JS::RootedValueVector arguments(context);
  if (!append_elements(context, first, arguments) || !append_elements(context, last_, arguments))
    return false;
  const bool returned = JS::Call(context, program_.root(), program_.function(0), arguments, &result);
  if (result_ == ResultKind::refusal) {
    if (!returned) return put_refusal(out);
    protocol::put_text(out, {});
    return true;
  }
  if (!returned) return false;
  if (result_ == ResultKind::truth) {
    protocol::put_text(out, JS::ToBoolean(result) ? "true" : "false");
    return true;
  }
  return put_json(context, result, out, out.size() + protocol::kMaxOutput);
}

// Appends the pending exception, unless it is an Error, or the script was stopped.
bool Applier::put_refusal(std::string& out) {
  JSContext* context = engine_.context();
  if (!JS_IsExceptionPending(context) || JS_IsThrowingOutOfMemory(context)) return false;
  JS::ExceptionStack exception(context);
  if (!JS::StealPendingExceptionStack(context, &exception)) return false;
  JS::RootedValue thrown(context, exception.exception());
  bool error = false;
  if (!is_error(context, thrown, error)) return false;
  if (!error) return put_json(context, thrown, out, out.size() + protocol::kMaxRefusal);
  JS::SetPendingExceptionStack(context, exception);
  return false;
}

}  // namespace divan::js::sandbox
