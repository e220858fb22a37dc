// Authorization and If-None-Match of arbitrary bytes, and the base64 in the former, compared with a slow and
// simple parser.
#include "divan/http/basic_auth.h"
#include "divan/http/etag.h"
#include "fuzz/check.h"

namespace {

namespace http = divan::http;
using divan::fuzz::answers;
using divan::fuzz::check;

// RFC 4648, section 4, bit by bit.
std::optional<std::string> decode(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  const auto digits = text.substr(0, text.find_last_not_of('=') + 1);
  if (text.size() - digits.size() > 2) return std::nullopt;
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : digits) {
    const auto value = kDigits.find(c);
    if (value == kDigits.npos) return std::nullopt;
    bits = (bits << 6 | static_cast<unsigned>(value)) & 0xfff;
    count += 6;
    if (count >= 8) out += static_cast<char>(bits >> (count -= 8));
  }
  return out;
}

// The tags of a list up to the first malformed one.
bool matches(std::string_view field, std::string_view tag) {
  for (;;) {
    while (!field.empty() && std::string_view(" \t,").find(field[0]) != std::string_view::npos)
      field.remove_prefix(1);
    if (field.starts_with('*')) return true;
    if (field.starts_with("W/")) field.remove_prefix(2);
    if (!field.starts_with('"')) return false;
    const auto close = field.find('"', 1);
    if (close == field.npos) return false;
    if (field.substr(0, close + 1) == tag) return true;
    field.remove_prefix(close + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  check(divan::from_base64(divan::to_base64(text)) == text);
  check(divan::from_hex(divan::to_hex(text)) == text);
  check(divan::from_base64(text) == decode(text));

  std::optional<http::Credentials> credentials;
  if (answers(400, [&] { credentials = http::parse_basic(text); }) && credentials) {
    check(credentials->name.find(':') == std::string::npos);
    check(http::parse_basic(http::basic_authorization(*credentials)) == credentials);
  }
  check(http::if_none_match(text, "\"1-a\"") == matches(text, "\"1-a\""));
  // A well-formed tag matches itself.
  if (text.size() >= 2 && text.front() == '"' && text.find('"', 1) == text.size() - 1) {
    check(http::if_none_match(text, text));
  }
  return 0;
}
