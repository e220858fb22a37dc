#include "divan/http/field_list.h"

#include <algorithm>

namespace divan::http {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<std::string_view> elements;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (const auto element = trim(list.substr(0, comma)); !element.empty()) elements.push_back(element);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return elements;
}

}  // namespace divan::http
