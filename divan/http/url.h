// Percent-encoding and query strings (RFC 3986, sections 2.1 and 3.4).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::http {

/// Undoes percent-encoding, as in one segment of a path; '+' stands for itself. The bytes need not be UTF-8.
/// Throws bad_request for a '%' that two hexadecimal digits do not follow.
std::string percent_decode(std::string_view text);

/// Percent-encodes all but RFC 3986's unreserved characters, so that the result can stand as one segment of
/// a path or as a name or value in a query string.
std::string percent_encode(std::string_view bytes);

/// One name and value of a query string, decoded.
struct QueryParameter {
  std::string name;
  std::string value;  ///< empty where there is no '='

  friend bool operator==(const QueryParameter&, const QueryParameter&) = default;
};

/// The parameters of a raw query string in their order, repetitions kept. '+' stands for a space, as HTML
/// forms write it. Throws bad_request as percent_decode does.
std::vector<QueryParameter> parse_query(std::string_view query);

}  // namespace divan::http
