// Validates untrusted JSON. simdjson's On-Demand parser finds the tokens and checks UTF-8 and control
// characters; it validates a value only on access, so check() accesses each one. Numbers are also checked
// against the grammar, since On-Demand accepts 01, and those with an exponent against the range of a double:
// 1e400 is an error. (Integers of many digits are valid.) is_compact() checks text that was valid once and
// may have been damaged in the store.
#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <cstdlib>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::json {
namespace {

namespace ondemand = simdjson::ondemand;

[[noreturn]] void refuse(std::string_view why) {
  throw bad_request(fmt::format("invalid UTF-8 JSON: {}", why));
}

[[noreturn]] void refuse(simdjson::error_code error) { refuse(simdjson::error_message(error)); }

void check(simdjson::error_code error) {
  if (error) refuse(error);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// RFC 8259, section 6.
bool is_number(std::string_view token) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < token.size() && is_digit(token[i])) ++i;
    return i - start;
  };
  if (i < token.size() && token[i] == '-') ++i;
  const std::size_t integer_start = i;
  const std::size_t integer_digits = digits();
  if (integer_digits == 0 || (integer_digits > 1 && token[integer_start] == '0')) return false;
  if (i < token.size() && token[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < token.size() && (token[i] == 'e' || token[i] == 'E')) {
    ++i;
    if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == token.size();
}

std::string_view trimmed(std::string_view token) {
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t')) {
    token.remove_suffix(1);
  }
  return token;
}

// Returns true if a number with an exponent exceeds the largest double. A number below the smallest one is
// zero.
bool is_infinite(std::string_view token) {
  const auto exponent = token.find_first_of("eE");
  if (exponent == std::string_view::npos) return false;
  if (token.size() < 100 && token.size() - exponent <= 3) return false;  // at most e99
  return std::isinf(std::strtod(std::string(token).c_str(), nullptr));
}

void check_number(std::string_view token) {
  token = trimmed(token);
  if (!is_number(token)) refuse(fmt::format("`{}` is not a value.", utf8_prefix(token, 40)));
  if (is_infinite(token))
    refuse(fmt::format("the number `{}` exceeds the largest one, 1.8e308.", utf8_prefix(token, 40)));
}

void check_scalar(ondemand::value& value, ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::string: {
      std::string_view text;
      check(value.get_string().get(text));
      break;
    }
    case ondemand::json_type::number: check_number(value.raw_json_token()); break;
    case ondemand::json_type::boolean: {
      bool truth;
      check(value.get_bool().get(truth));
      break;
    }
    default: {
      bool null;
      check(value.is_null().get(null));
      if (!null) refuse("expected null.");
    }
  }
}

void check_value(ondemand::value value, int depth);

void check_array(ondemand::array array, int depth) {
  if (depth > kMaxDepth) refuse(fmt::format("nested deeper than {} levels.", kMaxDepth));
  for (auto element : array) {
    ondemand::value value;
    check(element.get(value));
    check_value(value, depth + 1);
  }
}

void check_object(ondemand::object object, int depth) {
  if (depth > kMaxDepth) refuse(fmt::format("nested deeper than {} levels.", kMaxDepth));
  for (auto field : object) {
    check(field.error());
    std::string_view key;
    check(field.unescaped_key().get(key));
    ondemand::value value;
    check(field.value().get(value));
    check_value(value, depth + 1);
  }
}

void check_value(ondemand::value value, int depth) {
  ondemand::json_type type;
  check(value.type().get(type));
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    check(value.get_array().get(array));
    check_array(array, depth);
  } else if (type == ondemand::json_type::object) {
    ondemand::object object;
    check(value.get_object().get(object));
    check_object(object, depth);
  } else {
    check_scalar(value, type);
  }
}

struct Parser {
  ondemand::parser parser;
  std::string padded;
};

Parser& this_threads_parser() {
  // On-Demand's own limit on depth only has to exceed ours.
  thread_local Parser instance;
  return instance;
}

// Each skip function removes a token from the front of `text`; false if `text` does not begin with that
// token.

bool skip(std::string_view& text, std::string_view token) {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

bool skip_string(std::string_view& text) {
  if (!skip(text, "\"")) return false;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '"') return true;
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c != '\\') continue;
    const bool is_code = skip(text, "u");
    const auto escape = text.substr(0, is_code ? 4 : 1);
    const auto* allowed = is_code ? "0123456789abcdefABCDEF" : "\"\\/bfnrt";
    if (escape.size() < (is_code ? 4 : 1) || escape.find_first_not_of(allowed) != std::string_view::npos)
      return false;
    text.remove_prefix(escape.size());
  }
  return false;
}

bool skip_scalar(std::string_view& text) {
  if (text.starts_with('"')) return skip_string(text);
  if (skip(text, "true") || skip(text, "false") || skip(text, "null")) return true;
  const auto token = text.substr(0, text.find_first_not_of("0123456789+-.eE"));
  text.remove_prefix(token.size());
  return is_number(token);
}

// Skips a member's name and colon.
bool skip_name(std::string_view& text) { return skip_string(text) && skip(text, ":"); }

// Larger buffers are freed after the request.
constexpr std::size_t kKeptBufferBytes = 64 << 10;  // per thread

}  // namespace

std::string compact(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) refuse("the text is empty.");
  if (text[first] != '{' && text[first] != '[') {
    // On-Demand treats a scalar at the root specially; as the only element of an array it is like any other.
    const std::string wrapped = compact(fmt::format("[{}]", text));
    std::size_t elements = 0;
    for_each_element(wrapped, [&](std::string_view) { return ++elements < 2; });
    if (elements != 1) refuse("there is text after the value.");
    return wrapped.substr(1, wrapped.size() - 2);
  }

  Parser& state = this_threads_parser();
  state.padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  state.padded.assign(text);
  if (state.parser.capacity() < text.size() || state.parser.max_depth() == 0) {
    check(state.parser.allocate(std::max<std::size_t>(text.size(), 4096), kMaxDepth + 16));
  }
  ondemand::document document;
  check(state.parser.iterate(state.padded).get(document));
  if (text[first] == '[') {
    ondemand::array array;
    check(document.get_array().get(array));
    check_array(array, 1);
  } else {
    ondemand::object object;
    check(document.get_object().get(object));
    check_object(object, 1);
  }
  const char* rest;
  if (!document.current_location().get(rest)) refuse("there is text after the value.");

  std::string out(text.size(), '\0');
  std::size_t length = 0;
  check(simdjson::minify(state.padded.data(), state.padded.size(), out.data(), length));
  out.resize(length);
  if (state.padded.capacity() > kKeptBufferBytes) {
    state.padded = std::string();
    state.parser = ondemand::parser();
  }
  return out;
}

bool is_compact(std::string_view text) {
  if (!is_utf8(text)) return false;
  std::string open;  // the closing brackets of the open containers
  for (;;) {
    // A value begins.
    if (skip(text, "[")) {
      open += ']';
      if (!text.starts_with(']')) continue;
    } else if (skip(text, "{")) {
      open += '}';
      if (!text.starts_with('}')) {
        if (!skip_name(text)) return false;
        continue;
      }
    } else if (!skip_scalar(text)) {
      return false;
    }
    // The value ends, and possibly its containers.
    while (!open.empty() && skip(text, {&open.back(), 1})) open.pop_back();
    if (open.empty()) return text.empty();
    if (!skip(text, ",") || (open.back() == '}' && !skip_name(text))) return false;
  }
}

}  // namespace divan::json
