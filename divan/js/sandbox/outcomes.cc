#include "divan/js/sandbox/outcomes.h"

namespace divan::js::sandbox {

bool Outcomes::begin_item() {
  const bool full = response_.size() - begin_ > protocol::kFullBytes || engine_.watchdog().batch_expired();
  if (full && !first_) return false;
  first_ = false;
  return true;
}

// Otherwise appends the failure.
bool Outcomes::is_to_run() {
  const auto* failure = program_.failure(0);
  if (failure == nullptr && uses_strikes_) failure = strikes_.out();
  if (failure != nullptr) protocol::put_failure(response_, *failure);
  return failure == nullptr;
}

void Outcomes::begin_call() {
  outcome_at_ = response_.size();
  engine_.log_for(0);
  protocol::put_u8(response_, 0);
  engine_.watchdog().begin_invocation();
}

void Outcomes::end_call(bool succeeded) {
  std::optional<Failure> failure;
  if (!succeeded) failure = take_failure(engine_);
  engine_.watchdog().end_invocation();
  if (!failure) return;
  response_.resize(outcome_at_);
  protocol::put_failure(response_, *failure);
  strikes_.count(engine_, *failure);
}

}  // namespace divan::js::sandbox
