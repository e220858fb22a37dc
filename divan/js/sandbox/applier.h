// Calls a function of a design document (a filter, a validation ...) with the arguments of each call of a
// batch.
#pragma once

#include <string>

#include "divan/js/sandbox/outcomes.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Created per request. Not thread-safe.
class Applier {
 public:
  /// The outcomes are appended to `response`. `program` must have one function.
  Applier(Engine& engine, Program& program, ResultKind result, std::string& response)
      : engine_(engine),
        program_(program),
        result_(result),
        outcomes_(engine, program, false, response),
        last_(engine.context()) {}

  /// Appends a call's outcome. Returns false if it belongs to another request, as Outcomes::append().
  bool apply(const ApplyRequest::Call& call);

 private:
  bool run(const ApplyRequest::Call& call, std::string& out);
  bool put_refusal(std::string& out);

  Engine& engine_;
  Program& program_;
  const ResultKind result_;
  Outcomes outcomes_;
  JS::PersistentRootedValue last_;  // the last arguments of the call before, an array
};

}  // namespace divan::js::sandbox
