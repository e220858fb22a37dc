// Turns text into the terms that a full-text index has, as CouchDB's search does.
// https://docs.couchdb.org/en/stable/ddocs/search.html#analyzers
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "divan/text/token.h"  // IWYU pragma: export

namespace divan::text {

/// Turns texts into tokens. Immutable, hence thread-safe.
class Analyzer {
 public:
  virtual ~Analyzer() = default;

  /// Calls `visit` for each token. Malformed UTF-8 is treated as U+FFFD. The time is linear in the size of
  /// the text, which is at most kMaxTextBytes; the memory beside it is that of its longest token. What
  /// `visit` throws is thrown.
  virtual void analyze(std::string_view utf8, const TokenVisitor& visit) const = 0;

  /// A part of a term, such as a prefix, with the case, accents and width that terms have. Malformed UTF-8
  /// becomes U+FFFD.
  virtual std::string normalize(std::string_view utf8) const = 0;

  /// Returns true if each text has one term: itself.
  virtual bool is_keyword() const { return false; }

  /// The analyzer of an index's field: this one, unless it is of the kind perfield. The fields `_id` and
  /// `_partition` have the analyzer keyword. It lives as long as this one.
  virtual const Analyzer& analyzer_for(std::string_view field) const;
};

/// The analyzer that a design document or a request defines: `json` is a string, its name, or an object
/// {"name": ..., "stopwords": [...]} or {"name": "perfield", "default": ..., "fields": {field: ...}}, of
/// which each analyzer has this form again. README.md lists the names. Without stop words the analyzer has
/// those of its language; keyword, simple, whitespace and simple_asciifolding have none and ignore them.
/// Throws bad_request, with the reason, if the name is unknown or the form another one.
std::shared_ptr<const Analyzer> make_analyzer(std::string_view json);

}  // namespace divan::text
