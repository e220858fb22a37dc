#include "divan/mango/options.h"

#include <fmt/core.h>

#include "divan/base/json.h"

namespace divan::mango {

Options::Options(std::string_view object) : members_(json::members_of(object)) {
  if (!object.starts_with('{')) throw bad_request("Request body must be a JSON object");
}

std::optional<std::string_view> Options::find(std::string_view name) {
  known_.emplace(name);
  return json::find(members_, name);
}

std::string_view Options::require(std::string_view name) {
  const auto value = find(name);
  if (!value) throw Error(400, "missing_required_key", fmt::format("Missing required key: {}", name));
  return *value;
}

bool Options::boolean(std::string_view name, bool fallback) {
  const auto value = find(name);
  if (!value) return fallback;
  if (value != "true" && value != "false")
    throw Error(400, "invalid_boolean", fmt::format("Invalid boolean value: {}", *value));
  return value == "true";
}

std::uint64_t Options::integer(std::string_view name, std::uint64_t fallback, std::uint64_t least) {
  const auto value = find(name);
  if (!value) return fallback;
  const auto number = json::int_value(*value);
  if (number && *number >= static_cast<std::int64_t>(least)) return static_cast<std::uint64_t>(*number);
  if (least > 0)
    throw Error(400, "invalid_pos_integer", fmt::format("{} is not an integer greater than zero", *value));
  throw Error(400, "invalid_non_neg_integer",
              fmt::format("{} is not an integer greater than or equal to zero", *value));
}

std::optional<std::string> Options::string(std::string_view name) {
  const auto value = find(name);
  if (!value) return std::nullopt;
  auto text = json::string_value(*value);
  if (!text) throw Error(400, "invalid_string", fmt::format("Invalid string: {}", *value));
  return text;
}

void Options::end() const {
  for (const auto& [name, value] : members_) {
    if (!known_.contains(name))
      throw Error(400, "invalid_key", fmt::format("Invalid key {} for this request.", name));
  }
}

}  // namespace divan::mango
