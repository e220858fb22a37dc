// What passwords of users must be: [chttpd_auth] password_regexp
// (https://docs.couchdb.org/en/stable/config/auth.html).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/config.h"

namespace re2 {
class RE2;
}

namespace divan::api {

/// Regular expressions that new passwords must match. Immutable, hence thread-safe.
class PasswordRules {
 public:
  /// `text` is CouchDB's list, in the syntax of Erlang: ["expression", {"expression", "reason"}]; empty: no
  /// rules. The expressions have the syntax of RE2. Throws bad_request if it is malformed.
  explicit PasswordRules(std::string_view text);
  /// Those of the settings.
  static PasswordRules of(const Config& config);

  /// Throws bad_request, with the reason of the rule, if the password breaks one.
  void check(std::string_view password) const;

 private:
  struct Rule {
    std::shared_ptr<const re2::RE2> expression;
    std::string reason;
  };
  std::vector<Rule> rules_;
};

}  // namespace divan::api
