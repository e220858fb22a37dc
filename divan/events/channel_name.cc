#include "divan/events/channel_name.h"

namespace divan::events {

std::string channel_name(std::initializer_list<std::string_view> parts) {
  std::string name;
  std::size_t size = 0;
  for (const auto part : parts) size += 1 + part.size();
  name.reserve(size);
  for (const auto part : parts) {
    name += '/';
    for (const char c : part) {
      if (c == '~') {
        name += "~0";
      } else if (c == '/') {
        name += "~1";
      } else {
        name += c;
      }
    }
  }
  return name;
}

}  // namespace divan::events
