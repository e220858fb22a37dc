#include "divan/app/pretty_json.h"

#include "divan/app/table.h"

namespace divan::app {
namespace {

// The index after the closing quote of a string; `at` is that of the opening quote.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

}  // namespace

std::string pretty_json(std::string_view compact) {
  std::string out;
  std::size_t depth = 0;
  const auto new_line = [&] { out += "\n" + std::string(2 * depth, ' '); };
  for (std::size_t i = 0; i < compact.size();) {
    const char c = compact[i];
    const bool opens = c == '{' || c == '[';
    if (c == '"') {
      const std::size_t end = string_end(compact, i);
      out += printable(compact.substr(i, end - i));
      i = end;
      continue;
    }
    ++i;
    if (opens && i < compact.size() && (compact[i] == '}' || compact[i] == ']')) {
      out += {c, compact[i++]};
    } else if (opens) {
      out += c;
      ++depth;
      new_line();
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
      new_line();
      out += c;
    } else if (c == ',') {
      out += c;
      new_line();
    } else {
      out += c;
      if (c == ':') out += ' ';
    }
  }
  return out;
}

}  // namespace divan::app
