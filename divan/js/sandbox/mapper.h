// Runs a program's map functions over the documents of a batch.
//
// A document is parsed once and frozen for all functions, as in CouchDB: an assignment to it has no effect
// (an error in strict mode, as is push() on one of its arrays), so the next function sees the original
// document. For a document of 1 KB freezing takes 2.5 us; parsing it again for each function would take 6.5
// us per function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/failure.h"
#include "divan/js/sandbox/program.h"

namespace divan::js::sandbox {

/// Created per request. Not thread-safe.
class Mapper {
 public:
  /// The outcomes are appended to `response`.
  Mapper(Engine& engine, Program& program, std::string& response)
      : engine_(engine), program_(program), response_(response), strikes_(program.size()) {}

  /// Appends a document's outcomes. Returns false and appends nothing if the response is full or the batch's
  /// time is up. The first document is always processed: output that does not fit fails as too_large.
  bool map(std::string_view document);

 private:
  bool read(std::string_view document, JS::MutableHandleValue value);
  bool is_full() const;
  void run(std::size_t function, JS::HandleValue document);
  bool append_emitted();

  Engine& engine_;
  Program& program_;
  std::string& response_;
  const std::size_t begin_ = response_.size();
  std::vector<Strikes> strikes_;  // by function
  std::size_t pairs_ = 0;
  bool first_ = true;
};

}  // namespace divan::js::sandbox
