#include "divan/base/json_members.h"

#include "divan/base/json.h"

namespace divan::json {

Members members_of(std::string_view object) {
  Members members;
  for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    members.insert_or_assign(unescape(raw_name), value);
    return true;
  });
  return members;
}

std::optional<std::string_view> find(const Members& members, std::string_view name) {
  const auto found = members.find(name);
  if (found == members.end()) return std::nullopt;
  return found->second;
}

}  // namespace divan::json
