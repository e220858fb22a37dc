#include "divan/base/ini.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::ini {
namespace {

constexpr std::string_view kSpace = " \t\r\v\f";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

bool is_comment(std::string_view line) { return line.starts_with(';') || line.starts_with('#'); }

// A semicolon within a word does not start a comment: "a;b".
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_word = i == 0 || kSpace.find(text[i - 1]) != std::string_view::npos;
    if (text[i] == ';' && begins_word) return text.substr(0, i);
  }
  return text;
}

// Parses the lines in order; take() returns false if its line is malformed.
class Parser {
 public:
  bool take(std::string_view line) {
    const std::string_view text = trimmed(line);
    if (text.empty() || is_comment(text)) return true;
    if (!is_utf8(text)) return false;
    if (text.front() == '[') return take_section(text);
    if (text.find('=') != std::string_view::npos) return take_setting(text);
    if (value_ == nullptr || kSpace.find(line.front()) == std::string_view::npos) return false;
    if (!value_->empty()) *value_ += ' ';
    *value_ += trimmed(without_comment(text));
    return true;
  }

  Sections sections;

 private:
  bool take_section(std::string_view text) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    const auto name = trimmed(text.substr(1, close - 1));
    const auto rest = trimmed(text.substr(close + 1));
    if (name.empty() || (!rest.empty() && !is_comment(rest))) return false;
    section_ = name;
    value_ = nullptr;
    return true;
  }

  bool take_setting(std::string_view text) {
    const std::size_t equals = text.find('=');
    const auto key = trimmed(text.substr(0, equals));
    if (key.empty() || section_.empty()) return false;
    value_ = &sections[section_][std::string(key)];
    *value_ = trimmed(without_comment(text.substr(equals + 1)));
    return true;
  }

  std::string section_;
  std::string* value_ = nullptr;  // of the last setting, for continuation lines
};

}  // namespace

Sections parse(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Parser parser;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!parser.take(text.substr(0, end)))
      throw internal_error(fmt::format("line {}: not a setting", number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(parser.sections);
}

std::string to_text(const Sections& sections) {
  std::string text;
  for (const auto& [section, keys] : sections) {
    if (!text.empty()) text += '\n';
    text += fmt::format("[{}]\n", section);
    for (const auto& [key, value] : keys) text += fmt::format("{} = {}\n", key, value);
  }
  return text;
}

bool can_hold(const std::string& section, const std::string& key, const std::string& value) {
  const Sections sections = {{section, {{key, value}}}};
  try {
    return parse(to_text(sections)) == sections;
  } catch (const Error&) { return false; }
}

}  // namespace divan::ini
