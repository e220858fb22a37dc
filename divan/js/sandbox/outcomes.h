// Runs the function of a program that has only one for each item of a request, and appends the outcomes.
#pragma once

#include <string>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/failure.h"
#include "divan/js/sandbox/program.h"

namespace divan::js::sandbox {

/// Created per request. Not thread-safe.
class Outcomes {
 public:
  /// The outcomes are appended to `response`. `program` must have one function. With `strikes`, a function
  /// that has run out of time or memory several times is not run again; without, the items are independent.
  Outcomes(Engine& engine, Program& program, bool strikes, std::string& response)
      : engine_(engine), program_(program), uses_strikes_(strikes), response_(response) {}

  /// Appends the outcome of one item: `call(response)` calls the function and appends its result, or returns
  /// false, with an exception pending or the script stopped. Returns false and appends nothing if the
  /// response is full or the batch's time is up. The first item is always processed.
  template <class Call>
  bool append(const Call& call) {
    if (!begin_item()) return false;
    if (is_to_run()) {
      begin_call();
      end_call(call(response_));
    }
    return true;
  }

 private:
  bool begin_item();
  bool is_to_run();
  void begin_call();
  void end_call(bool succeeded);

  Engine& engine_;
  Program& program_;
  const bool uses_strikes_;
  std::string& response_;
  const std::size_t begin_ = response_.size();
  std::size_t outcome_at_ = 0;  // where the outcome of the running call begins
  Strikes strikes_;
  bool first_ = true;
};

}  // namespace divan::js::sandbox
