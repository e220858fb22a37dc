// The request of `_find` and `_explain`
// (https://docs.couchdb.org/en/stable/api/database/find.html).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/mango/sort.h"
#include "divan/selector/selector.h"

namespace divan::mango {

/// The number of results without `limit`; the setting [mango] default_limit.
inline constexpr std::uint64_t kDefaultLimit = 25;

/// The maximum number of `fields`.
inline constexpr std::size_t kMaxFields = 1'000;

/// A value type.
struct FindRequest {
  selector::Selector selector;
  std::vector<std::string> use_index{};  // empty, a design document, or that and a name
  std::string bookmark{};                // empty: none
  std::uint64_t limit = kDefaultLimit;
  std::uint64_t skip = 0;
  Sort sort{};
  std::optional<std::vector<std::string>> fields{};  // nullopt: all
  std::string partition{};                           // empty: the whole database
  std::uint64_t r = 1;                               // only changes execution_stats
  bool conflicts = false;
  bool stale_ok = false;  // `stale` is "ok"
  bool update = true;
  bool stable = false;  // has no effect
  bool execution_stats = false;
  bool allow_fallback = true;

  /// Parses a request in json::compact()'s form. Throws CouchDB's errors (400), among them those of
  /// selector::Selector::parse() and Sort::parse().
  static FindRequest parse(std::string_view json, std::uint64_t default_limit = kDefaultLimit);

  /// Returns true if the query waits until its index has everything that was written before.
  bool waits_for_index() const { return update && !stale_ok; }
  /// The id of the design document of `use_index`, which must not be empty.
  std::string wanted_design() const;
};

/// The id of a design document that may be named without its prefix.
std::string design_id(std::string_view name);

/// Parses `use_index`, or an element of `docids` of `_index/_bulk_delete`: a design document, or that and the
/// name of an index. Throws invalid_index_name (400).
std::vector<std::string> parse_index_name(std::string_view json);

}  // namespace divan::mango
