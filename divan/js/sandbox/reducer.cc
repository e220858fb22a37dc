#include "divan/js/sandbox/reducer.h"

#include <js/CallAndConstruct.h>
#include <js/ValueArray.h>

#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {

bool Reducer::reduce(const ReduceRequest::Group& group) {
  const bool full = response_.size() - begin_ > protocol::kFullBytes || engine_.watchdog().batch_expired();
  if (full && !first_) return false;
  first_ = false;
  if (const auto* failure = program_.failure(0)) {
    protocol::put_failure(response_, *failure);
  } else if (const auto* out = strikes_.out()) {
    protocol::put_failure(response_, *out);
  } else {
    run(group);
  }
  return true;
}

void Reducer::run(const ReduceRequest::Group& group) {
  const auto start = response_.size();
  engine_.log_for(0);
  protocol::put_u8(response_, 0);
  engine_.watchdog().begin_invocation();
  std::optional<Failure> failure;
  if (!call(group)) failure = take_failure(engine_);
  engine_.watchdog().end_invocation();
  if (!failure) return;
  response_.resize(start);
  protocol::put_failure(response_, *failure);
  strikes_.count(engine_, *failure);
}

bool Reducer::call(const ReduceRequest::Group& group) {
  JSContext* context = engine_.context();
  JS::RootedValueArray<3> arguments(context);
  if (!parse_json(context, group.keys, arguments[0])) return false;
  if (!parse_json(context, group.values, arguments[1])) return false;
  arguments[2].setBoolean(rereduce_);
  JS::RootedValue result(context);
  return JS_CallFunctionValue(context, nullptr, program_.function(0), arguments, &result) &&
         put_json(context, result, response_, response_.size() + protocol::kMaxOutput);
}

}  // namespace divan::js::sandbox
