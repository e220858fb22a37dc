// JSON text (RFC 8259).
//
// Documents travel through Divan as the text that a client sent: order of members, spelling of numbers and
// duplicates are kept. compact() checks foreign text and takes the white space out; for_each_member() and
// for_each_element() then find their way through such checked text without building a tree. Small things at
// the edges (settings, request bodies of our own API) are parsed into boost::json values.
#pragma once

#include <boost/json.hpp>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace divan::json {

/// The deepest nesting that compact() takes.
inline constexpr int kMaxDepth = 1000;

/// Checks that `text` is exactly one JSON value in valid UTF-8 and answers it without white space between
/// tokens. Throws bad_request ("invalid UTF-8 JSON: ...") for anything else. Numbers of any size and
/// precision pass.
std::string compact(std::string_view text);

/// Whether `text` is exactly one JSON value in compact()'s form. Unlike compact() it takes any depth, and
/// escapes of lone surrogates: what JavaScript's JSON.stringify() writes.
bool is_compact(std::string_view text);

/// Called with the member's name as written between its quotes (escapes not undone) and its value's text.
/// Answers whether to go on.
using MemberVisitor = std::function<bool(std::string_view raw_name, std::string_view value)>;
/// Called with an element's text; answers whether to go on.
using ElementVisitor = std::function<bool(std::string_view value)>;

// The walks take text in compact()'s form. Of any other they find something within it, or nothing.

/// Walks over the members of an object. False if `object` is not an object.
bool for_each_member(std::string_view object, const MemberVisitor& visit);

/// Walks over the elements of an array. False if `array` is not an array.
bool for_each_element(std::string_view array, const ElementVisitor& visit);

/// The value of the object's member of this name, which must need no escapes; the last one where it is
/// repeated. Nothing where it is missing.
std::optional<std::string_view> member(std::string_view object, std::string_view name);
/// The answer is a part of `object`, which must last as long.
template <std::same_as<std::string> Temporary>
std::optional<std::string_view> member(Temporary&& object, std::string_view name) = delete;

/// The text of a string token in compact()'s form, escapes undone; nothing if it is no string.
std::optional<std::string> string_value(std::string_view token);

/// The text between a string's quotes, escapes undone.
std::string unescape(std::string_view raw);

/// An integer token's value; nothing if it is no integer or does not fit.
std::optional<std::int64_t> int_value(std::string_view token);

/// Appends `text`, which must be UTF-8, as a JSON string with its quotes.
void append_string(std::string& out, std::string_view text);

/// Appends the shortest digits that read back as `value`; infinities and NaN, which JSON lacks, become null.
void append_double(std::string& out, double value);

/// `text` as a JSON string.
std::string quoted(std::string_view text);

/// Parses foreign text into a tree; throws bad_request as compact() does. For small inputs.
boost::json::value parse(std::string_view text);

/// Parses foreign text that must be an object; throws bad_request ("Request body must be a JSON object").
boost::json::object parse_object(std::string_view text);

/// Appends JSON to a string and puts the commas in. A thin, trusting helper: the caller calls in a sensible
/// order.
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
