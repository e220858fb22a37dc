// The functions `validate_doc_update` of a database
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#validate-document-update-functions).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "divan/docs/validation.h"
#include "divan/js/pool.h"

namespace divan::functions {

/// The functions that validate the documents of a database. Immutable, hence thread-safe.
struct ValidationFunctions {
  std::string validators;             ///< the list (docs/validation.h) of their design documents
  std::vector<js::Program> programs;  ///< of one function each
  std::size_t bytes = 0;              ///< approximate size in memory
};

/// Reads the functions of a list that was read in the same transaction, as a snapshot.
ValidationFunctions read_validation_functions(kv::Transaction& tx, const docs::Database& database,
                                              std::string validators);

/// What a function says about a case.
struct FunctionVerdict {
  /// forbidden (403) or unauthorized (401) with the first thousand bytes of the function's message,
  /// unknown_error (500) if it throws something else, or validation_function_failed (500).
  std::optional<Error> error{};
  bool is_slow = false;  ///< it ran out of time or memory
};

/// Calls one of the functions for the cases: for all, or only for the first ones, but at least one. The
/// arguments of a case are [document, replaced document], and [user context, security object]. Blocks; throws
/// what js::Pool throws.
std::vector<FunctionVerdict> validate(js::Pool& pool, const js::Program& program,
                                      std::span<const js::Arguments> cases, const js::Limits& limits);

/// Throws compilation_error (400) if `validate_doc_update` cannot be compiled. Blocks.
void check_validation(js::Pool& pool, const std::string& design_id, std::string_view body);

}  // namespace divan::functions
