// Functions of design documents that select documents: filters of feeds, and map functions
// (https://docs.couchdb.org/en/stable/api/database/changes.html#filtering).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/docs/catalog.h"
#include "divan/js/pool.h"

namespace divan::functions {

/// Immutable, hence thread-safe. Its pool must outlive it.
class FilterFunction {
 public:
  virtual ~FilterFunction() = default;

  /// Functions with equal keys select the same documents.
  virtual const std::string& key() const = 0;

  /// Returns whether the function selects each of these documents (JSON): of the first ones, at least of one,
  /// if it takes long. Blocks. Throws filter_function_failed (500) if it fails for the first document, and
  /// what js::Pool throws.
  virtual std::vector<bool> select(std::span<const std::string> documents,
                                   const js::Limits& limits) const = 0;
};

/// The function `filters.{function}` of a design document, by a name "{design document}/{function}", whose
/// parts may be percent-encoded; `request` is its second argument, a JSON object. Reads the design document.
/// Throws bad_request for another name, and not_found if there is no such function.
std::unique_ptr<FilterFunction> read_filter(js::Pool& pool, kv::Transaction& tx,
                                            const docs::Database& database, std::string_view name,
                                            const std::string& request);

/// The documents for which the map function of a view, "{design document}/{view}", emits anything. Throws the
/// same.
std::unique_ptr<FilterFunction> read_view_filter(js::Pool& pool, kv::Transaction& tx,
                                                 const docs::Database& database, std::string_view name);

}  // namespace divan::functions
