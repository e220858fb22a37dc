// Untrusted JSON: the same texts are accepted as by Boost's parser, compacting changes no value, and the
// walks over compact text find the members, elements, strings and numbers that Boost finds.
#include "divan/base/json.h"

#include <algorithm>

#include "divan/base/json_duplicates.h"
#include "fuzz/check.h"

namespace {

namespace json = divan::json;
using divan::fuzz::check;

// Returns true if there may be a number with an exponent that is too large for a double.
bool has_large_number(std::string_view text) {
  constexpr std::string_view kNumber = "0123456789.eE+-";
  for (std::size_t begin = 0; (begin = text.find_first_of(kNumber, begin)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_not_of(kNumber, begin), text.size());
    const auto number = text.substr(begin, end - begin);
    const std::size_t exponent = number.find_first_of("eE");
    if (exponent != number.npos && (number.size() - exponent > 3 || number.size() > 200)) return true;
    begin = end;
  }
  return false;
}

// nullopt if Boost rejects the text; excludes numbers that are too large for a double.
std::optional<boost::json::value> oracle(std::string_view text, bool& undecided) {
  boost::json::parse_options options;
  options.max_depth = json::kMaxDepth;
  boost::system::error_code error;
  auto value = boost::json::parse(text, error, {}, options);
  undecided = error == boost::json::error::exponent_overflow || has_large_number(text);
  if (error) return std::nullopt;
  return value;
}

void check_string(std::string_view token, const boost::json::value& value) {
  const auto text = json::string_value(token);
  check(text.has_value() == value.is_string());
  if (!text) return;
  check(*text == std::string_view(value.get_string()) && divan::is_utf8(*text));
  const std::string again = json::quoted(*text);
  check(json::compact(again) == again && json::string_value(again) == text);
}

void check_walk(std::string_view token, const boost::json::value& value);

void check_object(std::string_view token, const boost::json::value& value) {
  std::string again = "{";
  const bool is_object =
      json::for_each_member(token, [&](std::string_view raw_name, std::string_view member) {
        const std::string name = json::unescape(raw_name);
        check(value.is_object() && value.get_object().contains(name));
        if (again.size() > 1) again += ',';
        again.append("\"").append(raw_name).append("\":").append(member);
        const auto found = raw_name == name ? json::member(token, name) : std::nullopt;
        // The last of repeated members is the one that counts, in both, unless spelled in different ways.
        if (found && found->data() == member.data() && token.find('\\') == token.npos) {
          check_walk(member, value.get_object().at(name));
        }
        return true;
      });
  check(is_object == value.is_object());
  if (is_object) check(again + '}' == token);
}

void check_array(std::string_view token, const boost::json::value& value) {
  std::string again = "[";
  std::size_t count = 0;
  const bool is_array = json::for_each_element(token, [&](std::string_view element) {
    check(value.is_array() && count < value.get_array().size());
    if (count > 0) again += ',';
    again += element;
    check_walk(element, value.get_array()[count++]);
    return true;
  });
  check(is_array == value.is_array());
  if (is_array) check(again + ']' == token && count == value.get_array().size());
}

void check_walk(std::string_view token, const boost::json::value& value) {
  check_string(token, value);
  check_object(token, value);
  check_array(token, value);
  if (const auto number = json::int_value(token)) {
    check(value.is_number());
    if (value.is_int64()) check(value.get_int64() == *number);
  } else {
    check(!value.is_int64());
  }
}

// Boost keeps the last of repeated members, too.
void check_duplicates(const std::string& compact, const boost::json::value& value) {
  const auto unique = json::without_duplicates(compact);
  if (!unique) return;
  check(unique->size() < compact.size() && json::compact(*unique) == *unique);
  check(!json::without_duplicates(*unique));
  // A number such as 0e400 does not equal itself for Boost.
  if (compact.find_first_of("eE") == compact.npos) check(json::parse(*unique) == value);
}

// With unchecked text, all results lie within the text.
void check_damaged(std::string_view text, int depth) {
  const auto within = [&](std::string_view part) {
    check(part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
    if (depth > 0) check_damaged(part, depth - 1);
    return true;
  };
  json::for_each_member(text, [&](std::string_view name, std::string_view member) {
    json::unescape(name);
    return within(name) && within(member);
  });
  json::for_each_element(text, within);
  json::string_value(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  check_damaged(text, 3);
  std::string compact;
  const bool taken = divan::fuzz::answers(400, [&] { compact = json::compact(text); });
  bool undecided = false;
  const auto expected = oracle(text, undecided);
  if (undecided) return 0;
  check(taken == expected.has_value());
  if (!taken) return 0;
  check(json::compact(compact) == compact && compact.size() <= text.size());
  const auto value = oracle(compact, undecided);
  // As text, because Boost reads 0e400 as a number that does not equal itself.
  check(value && boost::json::serialize(*value) == boost::json::serialize(*expected));
  check(boost::json::serialize(json::parse(text)) == boost::json::serialize(*value));
  check_duplicates(compact, *value);
  // Walking costs time that grows with the square of the depth.
  if (compact.size() <= 2000) check_walk(compact, *value);
  return 0;
}
