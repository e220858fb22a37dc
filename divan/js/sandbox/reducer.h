// Runs a reduce function over the groups of a batch.
#pragma once

#include <string>

#include "divan/js/sandbox/outcomes.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Created per request. Not thread-safe.
class Reducer {
 public:
  /// The outcomes are appended to `response`. `program` must have one function.
  Reducer(Engine& engine, Program& program, bool rereduce, std::string& response)
      : engine_(engine), program_(program), rereduce_(rereduce), outcomes_(engine, program, true, response) {}

  /// Appends a group's outcome. Returns false if it belongs to another request, as Outcomes::append().
  bool reduce(const ReduceRequest::Group& group);

 private:
  bool call(const ReduceRequest::Group& group, std::string& out);

  Engine& engine_;
  Program& program_;
  const bool rereduce_;
  Outcomes outcomes_;
};

}  // namespace divan::js::sandbox
