// Templates of jobs: JSON values whose strings have placeholders for fields of a document.
//
// A string that is one placeholder, "{total}", stands for the field's value, whatever its type. In other
// text, "welcome-{_id}", a placeholder stands for a string, a number or a boolean. Fields are as in selectors
// (selector/path.h); "{{" and "}}" stand for braces. Names of members have no placeholders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "divan/base/error.h"
#include "divan/selector/path.h"

namespace divan::index::triggers {

/// A document lacks a field of a template, or it has another type than the template requires.
class FieldMissing : public Error {
 public:
  explicit FieldMissing(std::string reason) : Error(400, "missing_field", std::move(reason)) {}
};

/// Immutable after parse(), hence thread-safe.
class Template {
 public:
  /// The maximum number of placeholders: each is searched in the document.
  static constexpr std::size_t kMaxPlaceholders = 100;

  /// Parses a template in json::compact()'s form. Throws bad_request if a placeholder is malformed, or there
  /// are too many.
  static Template parse(std::string_view json);

  /// Returns true if it has no placeholders.
  bool is_constant() const { return placeholders_ == 0; }
  /// Returns true if it is a string.
  bool is_text() const { return is_text_; }

  /// The template as JSON, with the fields of a document in json::compact()'s form. Throws FieldMissing, and
  /// bad_request if it becomes longer than `max_bytes`.
  std::string fill(std::string_view document, std::size_t max_bytes) const;

  /// The same as text, for a template that is a string: its value must be a string, a number or a boolean.
  std::string fill_text(std::string_view document, std::size_t max_bytes) const;

 private:
  struct Piece {
    std::string literal{};  // JSON; of a placeholder: as written, for messages
    selector::Path path{};  // of a placeholder; otherwise empty
    bool is_value = false;  // the placeholder stands for a value, not for a part of a string
  };

  void add_literal(std::string_view json);
  void add_value(std::string_view json);
  void add_string(std::string_view raw);

  std::vector<Piece> pieces_;
  std::size_t placeholders_ = 0;
  bool is_text_ = false;
};

}  // namespace divan::index::triggers
