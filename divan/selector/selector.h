// Selectors: conditions on documents in the language of MongoDB, as CouchDB has it
// (https://docs.couchdb.org/en/stable/api/database/find.html#selector-syntax).
//
// As in CouchDB, a selector is first brought into a form in which operators apply to one field each and
// negations are as far inside as they go: {"$not": {"a": {"$lt": 1}}} is {"a": {"$gte": 1}}. This decides
// what is not obvious: a document without the field `a` matches neither.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "divan/selector/text_operator.h"

namespace divan::selector {

struct Condition;

/// Immutable, hence thread-safe. Cheap to copy.
class Selector {
 public:
  /// Parses a selector in the form of json::compact(). Throws CouchDB's errors (400): bad_request if it is
  /// not an object, invalid_operator, not_supported, bad_arg, invalid_field_name, invalid_selector; and
  /// invalid_selector for one that is too large.
  static Selector parse(std::string_view json, TextOperator text_operator = TextOperator::refused);

  /// Returns true if the document, an object in the form of json::compact(), matches. Throws
  /// selector_too_expensive (413) if that takes much longer than to read it several times. `has_text` must be
  /// given if the selector has `$text`.
  bool matches(std::string_view document, const TextTest& has_text = {}) const;

  /// The normal form (condition.h). Valid as long as a copy of the selector.
  const Condition& condition() const { return *root_; }

 private:
  explicit Selector(std::shared_ptr<const Condition> root) : root_(std::move(root)) {}

  std::shared_ptr<const Condition> root_;
};

}  // namespace divan::selector
