#include "divan/api/body.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::api {

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
  if (!text) throw bad_request(fmt::format("`{}` is a string.", name));
  return text;
}

std::optional<std::int64_t> Body::integer(std::string_view name) const {
  const auto value = raw(name);
  if (!value || *value == "null") return std::nullopt;
  const auto number = json::int_value(*value);
  if (!number) throw bad_request(fmt::format("`{}` is an integer.", name));
  return number;
}

std::string Body::required(std::string_view name) const {
  auto text = string(name);
  if (!text) throw bad_request(fmt::format("`{}` is missing.", name));
  return *std::move(text);
}

std::vector<Body> Body::objects(std::string_view name, MemberNames known) const {
  std::vector<Body> objects;
  const bool is_array = json::for_each_element(raw(name).value_or(""), [&](std::string_view element) {
    const auto number = objects.size() + 1;
    if (!element.starts_with('{'))
      throw bad_request(fmt::format("Element {} of `{}` is no object.", number, name));
    try {
      objects.emplace_back(std::string(element), known);
    } catch (const Error& error) {
      throw bad_request(fmt::format("Element {} of `{}`: {}", number, name, error.reason()));
    }
    return true;
  });
  if (!is_array) throw bad_request(fmt::format("`{}` is an array.", name));
  return objects;
}

}  // namespace divan::api
