// What users want run, and within which limits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/clock.h"

namespace divan::js {

/// Whose functions they are. What functions of one database keep in variables, those of another never see,
/// also if they are the same.
struct Owner {
  std::string database;         ///< its name
  std::int64_t number = 0;      ///< its number, unlike that of a later database of this name
  std::string design_document;  ///< its id
};

/// A function of a design document, as its author wrote it: the text of a function expression.
struct Function {
  std::string name;  ///< for messages
  std::string source;
  Owner owner = {};
};

/// Functions that share a global object: those of one design document. At most protocol::kMaxFunctions, all
/// of one owner.
struct Program {
  /// Chosen by the caller so that equal ids mean equal functions and modules: a hash of the sources.
  std::string id;
  std::vector<Function> functions;
  /// The modules that require() finds below "views/lib": a JSON object. Empty: there is no require().
  std::string lib = {};
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
  /// Processor time of one call of a function. Nothing: what the pool is set to.
  std::optional<Duration> invocation = {};
  /// Real time after which a batch takes up no further document: others get their turn then.
  Duration batch = std::chrono::seconds(1);

  /// The call is short, and may use processes that are reserved for such calls. There one call of a function
  /// has kUrgentInvocation; a request that needs more is made again without haste.
  bool urgent = false;
  /// Of an urgent call: somebody waits for the answer.
  bool waited_for = false;
  /// Called before an urgent request is made again without haste. May throw, which ends the call.
  std::function<void()> on_slow = {};
  /// Ends the call, and the process that runs it, with service_unavailable (503).
  std::stop_token stop = {};
};

/// What an urgent request has at first: processor time of one call of a function, and real time of a batch.
inline constexpr Duration kUrgentInvocation = std::chrono::milliseconds(250);
inline constexpr Duration kUrgentBatch = std::chrono::milliseconds(250);

}  // namespace divan::js
