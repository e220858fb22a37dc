#include "divan/events/channel_name.h"

namespace divan::events {
namespace {

void append_part(std::string& name, std::string_view part) {
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

template <class Parts>
std::string join(const Parts& parts) {
  std::string name;
  std::size_t size = 0;
  for (const auto& part : parts) size += 1 + part.size();
  name.reserve(size);
  for (const auto& part : parts) append_part(name, part);
  return name;
}

}  // namespace

std::string channel_name(std::span<const std::string> parts) { return join(parts); }

std::string channel_name(std::initializer_list<std::string_view> parts) { return join(parts); }

std::vector<std::string> channel_parts(std::string_view name) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '/' || parts.empty()) parts.emplace_back();
    if (name[i] == '/') continue;
    if (name[i] == '~' && i + 1 < name.size()) {
      parts.back() += name[++i] == '1' ? '/' : '~';
    } else {
      parts.back() += name[i];
    }
  }
  return parts;
}

}  // namespace divan::events
