// Percent-encoding and query strings (RFC 3986, sections 2.1 and 3.4).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::http {

/// Decodes percent-encoding, as in one segment of a path; '+' stands for itself. The result need not be
/// UTF-8. Throws bad_request if a '%' is not followed by two hexadecimal digits.
std::string percent_decode(std::string_view text);

/// Percent-encodes all characters except RFC 3986's unreserved ones, so that the result can be used as one
/// segment of a path or as a name or value in a query string.
std::string percent_encode(std::string_view bytes);

/// One name and value of a query string, decoded.
struct QueryParameter {
  std::string name;
  std::string value;  ///< empty if there is no '='

  friend bool operator==(const QueryParameter&, const QueryParameter&) = default;
};

/// The parameters of a raw query string, in order and with repetitions. '+' stands for a space, as in HTML
/// forms. Throws bad_request as percent_decode() does.
std::vector<QueryParameter> parse_query(std::string_view query);

}  // namespace divan::http
