#include "divan/js/sandbox/mapper.h"

#include <js/CallAndConstruct.h>

#include "divan/js/sandbox/json_text.h"

namespace divan::js::sandbox {

bool Mapper::map(std::string_view document) {
  if (!first_ && engine_.watchdog().batch_expired()) return false;
  const auto size_before = response_.size();
  const auto pairs_before = pairs_;

  JS::RootedValue value(engine_.context());
  std::optional<Failure> unreadable;
  engine_.watchdog().begin_invocation();
  if (!read(document, &value)) unreadable = take_failure(engine_);
  engine_.watchdog().end_invocation();

  for (std::size_t i = 0; i < program_.size(); ++i) {
    if (unreadable) {
      protocol::put_failure(response_, {unreadable->kind, "the document: " + unreadable->message});
    } else if (const auto* failure = program_.failure(i)) {
      protocol::put_failure(response_, *failure);
    } else if (const auto* out = strikes_[i].out()) {
      protocol::put_failure(response_, *out);
    } else if (!is_full()) {
      run(i, value);
    } else if (first_) {
      protocol::put_failure(
          response_, {FailureKind::too_large, "the response is full: earlier functions emitted too much"});
    } else {
      response_.resize(size_before);
      pairs_ = pairs_before;
      return false;
    }
  }
  first_ = false;
  return true;
}

bool Mapper::is_full() const {
  return response_.size() - begin_ > protocol::kFullBytes || pairs_ > protocol::kFullPairs;
}

bool Mapper::read(std::string_view document, JS::MutableHandleValue value) {
  JSContext* context = engine_.context();
  if (!parse_json(context, document, value)) return false;
  if (!value.isObject()) return true;
  JS::RootedObject object(context, &value.toObject());
  return JS_DeepFreezeObject(context, object);
}

void Mapper::run(std::size_t function, JS::HandleValue document) {
  JSContext* context = engine_.context();
  const auto start = response_.size();
  engine_.log_for(function);
  engine_.watchdog().begin_invocation();
  engine_.set_emitting(true);
  JS::RootedValue ignored(context);
  const bool returned = JS_CallFunctionValue(context, nullptr, program_.function(function),
                                             JS::HandleValueArray(document), &ignored);
  engine_.set_emitting(false);
  std::optional<Failure> failure;
  if (!returned || !append_emitted()) failure = take_failure(engine_);
  engine_.watchdog().end_invocation();
  engine_.emitted().clear();
  if (!failure) return;
  response_.resize(start);
  protocol::put_failure(response_, *failure);
  strikes_[function].count(engine_, *failure);
}

bool Mapper::append_emitted() {
  auto& emitted = engine_.emitted();
  const auto max_size = response_.size() + protocol::kMaxOutput;
  protocol::put_u8(response_, 0);
  protocol::put_u32(response_, emitted.length() / 2);
  for (std::size_t i = 0; i < emitted.length(); ++i) {
    if (!put_json(engine_.context(), emitted[i], response_, max_size)) return false;
  }
  pairs_ += emitted.length() / 2;
  return true;
}

}  // namespace divan::js::sandbox
