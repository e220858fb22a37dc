#include "divan/http/url.h"

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::http {
namespace {

std::string decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const auto byte = from_hex(text.substr(i + 1, 2));
      if (!byte || byte->empty()) throw bad_request("The URL has a malformed percent escape.");
      out += *byte;
      i += 2;
    }
  }
  return out;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string percent_decode(std::string_view text) { return decode(text, false); }

std::string percent_encode(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::vector<QueryParameter> parse_query(std::string_view query) {
  std::vector<QueryParameter> parameters;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.empty()) continue;
    const auto equals = std::min(part.find('='), part.size());
    const auto value = part.substr(std::min(equals + 1, part.size()));
    parameters.push_back({decode(part.substr(0, equals), true), decode(value, true)});
  }
  return parameters;
}

}  // namespace divan::http
