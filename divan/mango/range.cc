#include "divan/mango/range.h"

#include <algorithm>
#include <set>

#include "divan/base/json.h"
#include "divan/collation/collation.h"

namespace divan::mango {
namespace {

using selector::Condition;
using selector::Operator;
using selector::Path;

// As in CouchDB: `$exists` restricts no values, but lets an index of the field be chosen.
bool restricts_index(const Condition& condition) {
  switch (condition.op) {
    case Operator::less:
    case Operator::less_or_equal:
    case Operator::equal:
    case Operator::greater_or_equal:
    case Operator::greater:
    case Operator::exists: return true;
    case Operator::begins_with: return !condition.negated;
    default: return false;
  }
}

void raise_low(Range& range, const Range::Bound& bound) {
  auto& low = range.low;
  if (!low || bound.key > low->key) {
    low = bound;
  } else if (bound.key == low->key) {
    low->inclusive = low->inclusive && bound.inclusive;
  }
}

void lower_high(Range& range, const Range::Bound& bound) {
  auto& high = range.high;
  if (!high || bound.key < high->key) {
    high = bound;
  } else if (bound.key == high->key) {
    high->inclusive = high->inclusive && bound.inclusive;
  }
}

// A string after all strings with the prefix: U+FFFF is the greatest character for ICU's root collator, and
// U+10FFFF has the greatest bytes.
std::string after_prefix(const Condition& condition) {
  const bool by_bytes = condition.collation == collation::Collation::raw;
  return json::quoted(condition.text + (by_bytes ? "\xf4\x8f\xbf\xbf" : "\xef\xbf\xbf"));
}

void narrow(Range& range, const Condition& condition) {
  const auto bound = [&](bool inclusive) {
    return Range::Bound{condition.argument, condition.keys[0], inclusive};
  };
  switch (condition.op) {
    case Operator::less: lower_high(range, bound(false)); break;
    case Operator::less_or_equal: lower_high(range, bound(true)); break;
    case Operator::equal:
      raise_low(range, bound(true));
      lower_high(range, bound(true));
      break;
    case Operator::greater_or_equal: raise_low(range, bound(true)); break;
    case Operator::greater: raise_low(range, bound(false)); break;
    case Operator::begins_with: {
      const std::string last = after_prefix(condition);
      raise_low(range, {condition.argument, collation::encode_key(condition.argument, condition.collation)});
      lower_high(range, {last, collation::encode_key(last, condition.collation)});
      break;
    }
    default: break;
  }
  if (range.low && range.high)
    range.is_empty = range.low->key > range.high->key ||
                     (range.low->key == range.high->key && !(range.low->inclusive && range.high->inclusive));
}

void add_ranges(Ranges& ranges, const Condition& condition) {
  if (condition.op == Operator::all_of) {
    for (const auto& child : condition.children) add_ranges(ranges, child);
  } else if (restricts_index(condition)) {
    narrow(ranges[condition.path], condition);
  }
}

// Removes the fields that a matching document must have.
void remove_required(const Condition& condition, std::set<Path>& fields) {
  if (fields.empty()) return;
  switch (condition.op) {
    case Operator::always:
    case Operator::text:
    case Operator::none_of: return;
    case Operator::all_of:
      for (const auto& child : condition.children) remove_required(child, fields);
      return;
    case Operator::any_of: {
      if (condition.children.empty()) return;
      std::set<Path> rest;
      for (const auto& child : condition.children) {
        auto of_child = fields;
        remove_required(child, of_child);
        rest.merge(of_child);
      }
      fields = std::move(rest);
      return;
    }
    default:
      if (condition.op != Operator::exists || condition.exists) fields.erase(condition.path);
  }
}

void add_fields(std::vector<Path>& fields, const Condition& condition) {
  switch (condition.op) {
    case Operator::always:
    case Operator::text: return;
    case Operator::all_of:
    case Operator::any_of:
    case Operator::none_of:
      for (const auto& child : condition.children) add_fields(fields, child);
      return;
    default: fields.push_back(condition.path);
  }
}

}  // namespace

Ranges all_ranges_of(const Condition& condition) {
  Ranges ranges;
  add_ranges(ranges, condition);
  return ranges;
}

Ranges ranges_of(const Condition& condition) {
  Ranges ranges = all_ranges_of(condition);
  for (const auto& [field, range] : ranges) {
    if (range.is_empty) return {{field, range}};
  }
  return ranges;
}

std::vector<Path> fields_of(const Condition& condition) {
  std::vector<Path> fields;
  add_fields(fields, condition);
  std::ranges::sort(fields);
  fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
  return fields;
}

bool requires_fields(const Condition& condition, std::vector<Path> fields) {
  std::set<Path> missing(fields.begin(), fields.end());
  remove_required(condition, missing);
  return missing.empty();
}

bool is_constant(const Condition& condition, const Path& field) {
  if (condition.op == Operator::all_of)
    return std::ranges::any_of(condition.children,
                               [&](const Condition& child) { return is_constant(child, field); });
  return condition.op == Operator::equal && condition.path == field;
}

}  // namespace divan::mango
