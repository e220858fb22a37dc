// What users want run, and within which limits.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/clock.h"

namespace divan::js {

/// A function of a design document, as its author wrote it: the text of a function expression.
struct Function {
  std::string name;  ///< for messages
  std::string source;
};

/// Functions that share a global object: those of one design document. At most protocol::kMaxFunctions.
struct Program {
  /// Chosen by the caller so that equal ids mean equal functions: a hash of the sources.
  std::string id;
  std::vector<Function> functions;
};

/// A row that goes into a reduction. All but `id` are JSON.
struct ReduceRow {
  std::string_view key;
  std::string_view id;  ///< the document's, plain
  std::string_view value;
};

/// Rows that are reduced to one value; for a rereduce only their values count.
using ReduceGroup = std::span<const ReduceRow>;

struct Limits {
  /// Processor time of one call of a function.
  Duration invocation = std::chrono::seconds(5);
  /// Real time after which a batch takes up no further document.
  Duration batch = std::chrono::seconds(60);
};

}  // namespace divan::js
