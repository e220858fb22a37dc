#include "divan/index/triggers/check.h"

#include "divan/base/json.h"
#include "divan/index/triggers/state.h"

namespace divan::index::triggers {
namespace {

bool is_valid(Part part, std::string_view rest, std::string_view value) {
  switch (part) {
    case Part::seen:
      return kv::has_shape(rest, "s") && (value == seen_value(true) || value == seen_value(false));
    case Part::record: return rest.empty() && kv::has_shape(value, "bttv");
    case Part::jobs: return rest.empty() && value.size() == 8;
    case Part::rate: return rest.empty() && kv::has_shape(value, "ii");
    case Part::last_error: return rest.empty() && json::is_compact(value);
  }
  return false;
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  if (!docs::database_number(key)) return false;
  kv::tuple::Reader reader(key);
  reader.take_string();
  reader.take_int();
  if (reader.take_int() != static_cast<std::int64_t>(docs::Section::indexes) || !reader.take_bytes())
    return false;
  const auto part = reader.take_int();
  if (!part || *part < static_cast<int>(Part::seen) || *part > static_cast<int>(Part::last_error))
    return false;
  if (!is_valid(Part{static_cast<int>(*part)}, reader.rest(), value))
    findings_.add("a row of a trigger is damaged", key);
  return true;
}

}  // namespace divan::index::triggers
