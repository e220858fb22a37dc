// Runs a reduce function over the groups of a batch.
#pragma once

#include <string>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/failure.h"
#include "divan/js/sandbox/program.h"
#include "divan/js/sandbox/request.h"

namespace divan::js::sandbox {

/// Created per request. Not thread-safe.
class Reducer {
 public:
  /// The outcomes are appended to `response`. `program` must have one function.
  Reducer(Engine& engine, Program& program, bool rereduce, std::string& response)
      : engine_(engine), program_(program), rereduce_(rereduce), response_(response) {}

  /// Appends a group's outcome. Returns false and appends nothing if the response is full or the batch's time
  /// is up. The first group is always processed.
  bool reduce(const ReduceRequest::Group& group);

 private:
  void run(const ReduceRequest::Group& group);
  bool call(const ReduceRequest::Group& group);

  Engine& engine_;
  Program& program_;
  const bool rereduce_;
  std::string& response_;
  const std::size_t begin_ = response_.size();
  Strikes strikes_;
  bool first_ = true;
};

}  // namespace divan::js::sandbox
