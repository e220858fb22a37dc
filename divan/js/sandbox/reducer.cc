#include "divan/js/sandbox/reducer.h"

#include <js/CallAndConstruct.h>
#include <js/ValueArray.h>

#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {

bool Reducer::reduce(const ReduceRequest::Group& group) {
  return outcomes_.append([&](std::string& out) { return call(group, out); });
}

bool Reducer::call(const ReduceRequest::Group& group, std::string& out) {
  JSContext* context = engine_.context();
  JS::RootedValueArray<3> arguments(context);
  if (!parse_json(context, group.keys, arguments[0])) return false;
  if (!parse_json(context, group.values, arguments[1])) return false;
  arguments[2].setBoolean(rereduce_);
  JS::RootedValue result(context);
  return JS_CallFunctionValue(context, nullptr, program_.function(0), arguments, &result) &&
         put_json(context, result, out, out.size() + protocol::kMaxOutput);
}

}  // namespace divan::js::sandbox
