// The members of a JSON object by name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace divan::json {

/// Unescaped names with the texts of the values; of a name that occurs several times, the last value.
using Members = std::map<std::string, std::string_view, std::less<>>;

/// The members of an object in the form of compact(); empty for other values. Valid as long as `object`.
Members members_of(std::string_view object);

/// The value of a member; nullopt if there is none.
std::optional<std::string_view> find(const Members& members, std::string_view name);

}  // namespace divan::json
