#include "divan/api/body.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

// Maximum bytes of a client's value in an error message.
constexpr std::size_t kShownBytes = 100;

Error invalid(std::string_view what, std::string_view value, std::string_view expected) {
  return bad_request(fmt::format("{} is {}{}; expected {}.", what, utf8_prefix(value, kShownBytes),
                                 value.size() > kShownBytes ? "..." : "", expected));
}

}  // namespace

Error invalid_member(std::string_view name, std::string_view value, std::string_view expected) {
  return invalid(fmt::format("`{}`", name), value, expected);
}

Body::Body(std::string json, MemberNames known) : json_(std::move(json)) {
  const bool is_object = json::for_each_member(json_, [&](std::string_view name, std::string_view) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw bad_request(fmt::format("Unknown member `{}`.", name));
    }
    return true;
  });
  if (!is_object) throw bad_request("Request body must be a JSON object");
}

std::optional<std::string_view> Body::raw(std::string_view name) const { return json::member(json_, name); }

std::optional<std::string> Body::string(std::string_view name) const {
  const auto value = raw(name);
  if (!value || *value == "null") return std::nullopt;
  auto text = json::string_value(*value);
  if (!text) throw invalid_member(name, *value, "a string");
  return text;
}

std::optional<std::int64_t> Body::integer(std::string_view name) const {
  const auto value = raw(name);
  if (!value || *value == "null") return std::nullopt;
  const auto number = json::int_value(*value);
  if (!number) throw invalid_member(name, *value, "an integer");
  return number;
}

std::optional<bool> Body::boolean(std::string_view name) const {
  const auto value = raw(name);
  if (!value || *value == "null") return std::nullopt;
  if (*value != "true" && *value != "false") throw invalid_member(name, *value, "true or false");
  return *value == "true";
}

std::optional<std::chrono::milliseconds> Body::milliseconds(std::string_view name,
                                                            std::chrono::milliseconds most) const {
  const auto value = raw(name);
  if (!value || *value == "null") return std::nullopt;
  const auto ms = json::int_value(*value);
  if (!ms || *ms < 0 || *ms > most.count())
    throw invalid_member(name, *value, fmt::format("a number of milliseconds from 0 to {}", most.count()));
  return std::chrono::milliseconds(*ms);
}

std::optional<Body> Body::object(std::string_view name, std::initializer_list<std::string_view> known) const {
  const auto value = raw(name);
  if (!value || *value == "null") return std::nullopt;
  if (!value->starts_with('{')) {
    throw invalid_member(name, *value,
                         fmt::format("an object with the members `{}`", fmt::join(known, "`, `")));
  }
  try {
    return Body(std::string(*value), known);
  } catch (const Error& error) { throw bad_request(fmt::format("`{}`: {}", name, error.reason())); }
}

std::vector<std::string> Body::strings(std::string_view name) const {
  std::vector<std::string> strings;
  const auto list = raw(name).value_or("null");
  const bool is_array = json::for_each_element(list, [&](std::string_view element) {
    auto text = json::string_value(element);
    if (!text) throw invalid_member(name, list, "an array of strings");
    strings.push_back(*std::move(text));
    return true;
  });
  if (!is_array) throw invalid_member(name, list, "an array of strings");
  return strings;
}

std::string Body::required(std::string_view name) const {
  auto text = string(name);
  if (!text) throw bad_request(fmt::format("`{}` is missing.", name));
  return *std::move(text);
}

std::vector<Body> Body::objects(std::string_view name, MemberNames known) const {
  std::vector<Body> objects;
  const auto list = raw(name).value_or("null");
  const bool is_array = json::for_each_element(list, [&](std::string_view element) {
    const auto number = objects.size() + 1;
    if (!element.starts_with('{'))
      throw invalid(fmt::format("Element {} of `{}`", number, name), element, "an object");
    try {
      objects.emplace_back(std::string(element), known);
    } catch (const Error& error) {
      throw bad_request(fmt::format("Element {} of `{}`: {}", number, name, error.reason()));
    }
    return true;
  });
  if (!is_array) throw invalid_member(name, list, "an array of objects");
  return objects;
}

}  // namespace divan::api
