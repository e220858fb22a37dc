// Programs that the pool runs, and their limits.
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

/// The owner of functions. Functions of different databases never share state, even if their sources are
/// equal.
struct Owner {
  std::string database;         ///< its name
  std::int64_t number = 0;      ///< its number; differs for a later database of the same name
  std::string design_document;  ///< its id
};

/// A function of a design document: the source of a function expression.
struct Function {
  std::string name;  ///< for messages
  std::string source;
  Owner owner = {};
};

/// Functions that share a global object: those of one design document. At most protocol::kMaxFunctions, all
/// of one owner.
struct Program {
  /// A hash of the sources: programs with equal ids must have equal functions and modules.
  std::string id;
  std::vector<Function> functions;
  /// The JSON object in which require() finds modules, such as {"views": {"lib": {...}}}, and which is `this`
  /// in apply(). Empty: require() is not defined.
  std::string root = {};

  const Owner& owner() const {
    static const Owner no_owner;
    return functions.empty() ? no_owner : functions.front().owner;
  }
  /// The key of a program in a process. Equal programs of two databases have different keys, and so do not
  /// share globals.
  std::string key() const { return std::to_string(owner().number) + '/' + id; }
};

/// An input row of a reduction. All members except `id` are JSON.
struct ReduceRow {
  std::string_view key;
  std::string_view id;  ///< the document's id, not JSON
  std::string_view value;
};

/// Rows that are reduced to one value; a rereduce uses only their values.
using ReduceGroup = std::span<const ReduceRow>;

/// The arguments of a call of a function: the elements of two JSON arrays, one after the other.
struct Arguments {
  std::string_view first;
  std::string_view last;
};

struct Limits {
  /// Processor time of one call of a function; nullopt: PoolOptions::invocation.
  std::optional<Duration> invocation = {};
  /// Real time after which a batch starts no further document, so that other calls get the process.
  Duration batch = std::chrono::seconds(1);

  /// The call is short, and may use processes that are reserved for such calls. One call of a function then
  /// has kUrgentInvocation; a request that takes longer is repeated as a background call.
  bool urgent = false;
  /// For an urgent call: it is made only if the program was fast in one within the last ten minutes.
  bool known_quick = false;
  /// For an urgent call: a client waits for the result.
  bool waited_for = false;
  /// Called before an urgent request is repeated as a background call. An exception ends the call.
  std::function<void()> on_slow = {};
  /// Ends the call with service_unavailable (503), and kills its process.
  std::stop_token stop = {};
};

/// The limits of an urgent request: processor time of one call of a function, and real time of a batch.
inline constexpr Duration kUrgentInvocation = std::chrono::milliseconds(250);
inline constexpr Duration kUrgentBatch = std::chrono::milliseconds(250);

}  // namespace divan::js
