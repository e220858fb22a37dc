// JSON text (RFC 8259).
//
// Divan handles documents as the text that a client sent: the order of members, the spelling of numbers and
// duplicates are kept. compact() validates untrusted text and removes white space; for_each_member() and
// for_each_element() then walk the validated text without building a tree. Small inputs (settings, request
// bodies of our own API) are parsed into boost::json values.
#pragma once

#include <boost/json.hpp>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace divan::json {

/// The deepest nesting that compact() accepts.
inline constexpr int kMaxDepth = 1000;

/// Checks that `text` is exactly one JSON value in valid UTF-8, and returns it without white space between
/// tokens. Throws bad_request ("invalid UTF-8 JSON: ...") otherwise. Numbers may have any number of digits;
/// one with an exponent that exceeds the largest double is an error.
std::string compact(std::string_view text);

/// Returns true if `text` is exactly one JSON value in compact()'s form. Unlike compact() it accepts any
/// depth, and escapes of lone surrogates, which JavaScript's JSON.stringify() writes.
bool is_compact(std::string_view text);

/// Called with the member's name as written between its quotes (escapes not decoded) and its value's text.
/// Returns false to stop.
using MemberVisitor = std::function<bool(std::string_view raw_name, std::string_view value)>;
/// Called with an element's text; returns false to stop.
using ElementVisitor = std::function<bool(std::string_view value)>;

// The functions below require text in compact()'s form. For other text their result is unspecified, but they
// do not read beyond it.

/// Visits the members of an object. Returns false if `object` is not an object.
bool for_each_member(std::string_view object, const MemberVisitor& visit);

/// Visits the elements of an array. Returns false if `array` is not an array.
bool for_each_element(std::string_view array, const ElementVisitor& visit);

/// The value of the member of this name, which must need no escapes; of the last one if the name is repeated;
/// nullopt if the member is missing.
std::optional<std::string_view> member(std::string_view object, std::string_view name);
/// Deleted: the result refers to `object`, so a temporary would dangle.
template <std::same_as<std::string> Temporary>
std::optional<std::string_view> member(Temporary&& object, std::string_view name) = delete;

/// The decoded value of a string token; nullopt if the token is not a string.
std::optional<std::string> string_value(std::string_view token);

/// Decodes the text between a string's quotes. The escape of half of a surrogate pair, which is no character,
/// becomes U+FFFD.
std::string unescape(std::string_view raw);

/// An integer token's value; nullopt if the token is not an integer or does not fit.
std::optional<std::int64_t> int_value(std::string_view token);

/// Appends `text`, which must be UTF-8, as a JSON string with its quotes.
void append_string(std::string& out, std::string_view text);

/// Appends the shortest decimal that parses as `value`; infinities and NaN become null.
void append_double(std::string& out, double value);

/// `text` as a JSON string.
std::string quoted(std::string_view text);

/// Parses untrusted text into a tree; throws bad_request as compact() does. For small inputs.
boost::json::value parse(std::string_view text);

/// Parses untrusted text that must be an object; throws bad_request ("Request body must be a JSON object").
boost::json::object parse_object(std::string_view text);

/// Appends JSON to a string and inserts the commas. Does not check the order of calls.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  Writer& begin_object() { return open('{'); }
  Writer& end_object() { return close('}'); }
  Writer& begin_array() { return open('['); }
  Writer& end_array() { return close(']'); }
  Writer& key(std::string_view name) {
    comma();
    append_string(out_, name);
    out_ += ':';
    first_ = true;
    return *this;
  }
  Writer& string(std::string_view text) {
    comma();
    append_string(out_, text);
    return *this;
  }
  Writer& number(std::int64_t value) { return raw(std::to_string(value)); }
  Writer& boolean(bool value) { return raw(value ? "true" : "false"); }
  Writer& null() { return raw("null"); }
  /// `text` is one JSON value.
  Writer& raw(std::string_view text) {
    comma();
    out_ += text;
    return *this;
  }

 private:
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  Writer& open(char bracket) {
    comma();
    out_ += bracket;
    first_ = true;
    return *this;
  }
  Writer& close(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }

  std::string& out_;
  bool first_ = true;
};

}  // namespace divan::json
