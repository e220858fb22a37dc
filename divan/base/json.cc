#include "divan/base/json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "divan/base/error.h"

namespace divan::json {
namespace {

// The index after the string that starts at text[i] == '"'.
std::size_t skip_string(std::string_view text, std::size_t i) {
  const std::size_t begin = i + 1;
  for (std::size_t quote = text.find('"', begin); quote != std::string_view::npos;
       quote = text.find('"', quote + 1)) {
    // An odd number of backslashes escapes it.
    std::size_t backslashes = quote;
    while (backslashes > begin && text[backslashes - 1] == '\\') --backslashes;
    if ((quote - backslashes) % 2 == 0) return quote + 1;
  }
  return text.size();
}

// The index after the value that starts at text[i], in checked text without white space.
std::size_t skip_value(std::string_view text, std::size_t i) {
  int depth = 0;
  while (i < text.size()) {
    switch (text[i]) {
      case '"':
        i = skip_string(text, i);
        if (depth == 0) return i;
        continue;
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (depth == 0) return i;
        if (--depth == 0) return i + 1;
        break;
      case ',':
        if (depth == 0) return i;
        break;
      default: break;
    }
    ++i;
  }
  return i;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// What stands for half of a surrogate pair, which JavaScript allows in a string.
constexpr std::uint32_t kReplacementCharacter = 0xfffd;

std::uint32_t hex4(std::string_view raw, std::size_t i) {
  std::uint32_t value = 0;
  if (i + 4 <= raw.size()) std::from_chars(raw.data() + i, raw.data() + i + 4, value, 16);
  return value;
}

}  // namespace

bool for_each_member(std::string_view object, const MemberVisitor& visit) {
  if (object.empty() || object.front() != '{') return false;
  std::size_t i = 1;
  while (i < object.size() && object[i] == '"') {
    const std::size_t name_end = skip_string(object, i);
    if (name_end >= object.size()) break;
    const std::string_view name = object.substr(i + 1, name_end - i - 2);
    const std::size_t value_end = skip_value(object, name_end + 1);
    if (!visit(name, object.substr(name_end + 1, value_end - name_end - 1))) return true;
    i = value_end + 1;
  }
  return true;
}

bool for_each_element(std::string_view array, const ElementVisitor& visit) {
  if (array.empty() || array.front() != '[') return false;
  std::size_t i = 1;
  while (i < array.size() && array[i] != ']') {
    const std::size_t end = skip_value(array, i);
    if (!visit(array.substr(i, end - i))) return true;
    i = end + 1;
  }
  return true;
}

std::optional<std::string_view> member(std::string_view object, std::string_view name) {
  std::optional<std::string_view> found;
  for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    if (raw_name == name) found = value;
    return true;
  });
  return found;
}

std::optional<std::string> string_value(std::string_view token) {
  if (token.size() < 2 || token.front() != '"') return std::nullopt;
  return unescape(token.substr(1, token.size() - 2));
}

std::string unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    switch (raw[++i]) {
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'u': {
        std::uint32_t code = hex4(raw, i + 1);
        i += 4;
        if (code >= 0xd800 && code < 0xe000) {
          const std::uint32_t low = raw.substr(i + 1, 2) == "\\u" ? hex4(raw, i + 3) : 0;
          const bool is_pair = code < 0xdc00 && low >= 0xdc00 && low < 0xe000;
          code = is_pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : kReplacementCharacter;
          if (is_pair) i += 6;
        }
        append_utf8(out, code);
        break;
      }
      default: out += raw[i];  // quote, backslash, slash
    }
  }
  return out;
}

std::optional<std::int64_t> int_value(std::string_view token) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, start, i - start);
    start = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out.append(text, start);
  out += '"';
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, result.ptr);
}

std::string quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_string(out, text);
  return out;
}

boost::json::value parse(std::string_view text) {
  // compact() decides what is valid JSON: boost::json parses checked text only.
  const std::string checked = compact(text);
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::system::error_code error;
  auto value = boost::json::parse(checked, error, {}, options);
  if (error) throw bad_request(fmt::format("invalid UTF-8 JSON: {}", error.message()));
  return value;
}

boost::json::object parse_object(std::string_view text) {
  auto value = parse(text);
  if (!value.is_object()) throw bad_request("Request body must be a JSON object");
  return std::move(value.as_object());
}

}  // namespace divan::json
