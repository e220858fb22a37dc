#include "divan/http/accept.h"

#include <algorithm>
#include <optional>

#include "divan/http/field_list.h"
#include "divan/http/message.h"
#include "divan/http/multipart.h"

namespace divan::http {
namespace {

std::string_view name_of(std::string_view element) { return trim(element.substr(0, element.find(';'))); }

// Its weight is not 0.
bool is_accepted(std::string_view element) {
  const auto weight = field_parameter(element, "q");
  return !weight || weight->find_first_not_of("0.") != std::string::npos;
}

}  // namespace

bool accepts_gzip(std::string_view accepted) {
  std::optional<bool> named, any;
  for (const std::string_view element : split_list(accepted)) {
    const auto coding = name_of(element);
    const bool is_gzip = equal_ignoring_case(coding, "gzip") || equal_ignoring_case(coding, "x-gzip");
    if (is_gzip) named = named.value_or(false) || is_accepted(element);
    if (coding == "*") any = is_accepted(element);
  }
  return named.value_or(any.value_or(false));
}

bool accepts_media_type(std::string_view accepted, std::string_view type) {
  if (trim(accepted).empty()) return true;
  const std::string_view group = type.substr(0, type.find('/') + 1);  // "text/"
  int specificity = -1;
  bool is_taken = false;
  for (const std::string_view element : split_list(accepted)) {
    const auto range = name_of(element);
    int found = -1;
    if (range == "*/*") found = 0;
    if (range.ends_with("/*") && equal_ignoring_case(range.substr(0, range.size() - 1), group)) found = 1;
    if (equal_ignoring_case(range, type)) found = 2;
    if (found <= specificity) continue;
    specificity = found;
    is_taken = is_accepted(element);
  }
  return is_taken;
}

}  // namespace divan::http
