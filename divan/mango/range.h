// The values of a field that a selector allows: what is read of an index
// (CouchDB: mango_idx_view.erl, field_ranges).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "divan/selector/condition.h"

namespace divan::mango {

/// An interval of values. A value type.
struct Range {
  struct Bound {
    std::string json;
    std::string key;  // encoded, in the order of the field
    bool inclusive = true;
  };
  std::optional<Bound> low, high;  // nullopt: no bound
  bool is_empty = false;           // no value matches

  bool is_one_value() const { return low && high && low->key == high->key; }
};

/// The ranges of fields with comparisons that must all match.
using Ranges = std::map<selector::Path, Range>;
Ranges all_ranges_of(const selector::Condition& condition);
/// The same; but if one is empty, only that.
Ranges ranges_of(const selector::Condition& condition);

/// The paths of all fields that conditions name, except within `$elemMatch` and the like.
std::vector<selector::Path> fields_of(const selector::Condition& condition);

/// Returns true if a document can only match if it has all these fields.
bool requires_fields(const selector::Condition& condition, std::vector<selector::Path> fields);

/// Returns true if all matching documents have the same value in the field.
bool is_constant(const selector::Condition& condition, const selector::Path& field);

}  // namespace divan::mango
