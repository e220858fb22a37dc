// Runs a program's map functions over the documents of a batch.
//
// A document is parsed once and frozen for all functions, as in CouchDB: a function's assignment to it is
// without effect (an error in strict mode, as is push() on one of its arrays), so the next function sees the
// document as it is. For a document of 1 KB freezing takes 2.5 us where parsing it anew for each function
// takes 6.5 us a function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/failure.h"
#include "divan/js/sandbox/program.h"

namespace divan::js::sandbox {

/// One for a request. Single-threaded.
class Mapper {
 public:
  /// The outcomes go to the end of `answer`.
  Mapper(Engine& engine, Program& program, std::string& answer)
      : engine_(engine), program_(program), answer_(answer), strikes_(program.size()) {}

  /// Appends a document's outcomes. False, with nothing appended, if the answer is full or the batch's time
  /// is up. The first document is always done: what does not fit fails as too_large then.
  bool map(std::string_view document);

 private:
  bool read(std::string_view document, JS::MutableHandleValue value);
  bool is_full() const;
  void run(std::size_t function, JS::HandleValue document);
  bool append_emitted();

  Engine& engine_;
  Program& program_;
  std::string& answer_;
  const std::size_t begin_ = answer_.size();
  std::vector<Strikes> strikes_;  // by function
  std::size_t pairs_ = 0;
  bool first_ = true;
};

}  // namespace divan::js::sandbox
