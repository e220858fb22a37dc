#include "divan/base/config.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "divan/base/error.h"

namespace divan {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

Config::Sections read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const bool opened = file.is_open();
  std::string text;
  char buffer[4096];
  while (file.read(buffer, sizeof buffer), file.gcount() > 0)
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
  if (!opened || file.bad()) throw internal_error(fmt::format("Cannot read settings file {}.", path));
  try {
    return ini::parse(text);
  } catch (const Error& error) {
    throw internal_error(fmt::format("Settings file {}, {}.", path, error.reason()));
  }
}

void merge(Config::Sections& into, const Config::Sections& from) {
  for (const auto& [section, keys] : from) {
    for (const auto& [key, value] : keys) into[section][key] = value;
  }
}

std::optional<std::string> find(const Config::Sections& sections, const std::string& section,
                                const std::string& key) {
  const auto found = sections.find(section);
  if (found == sections.end()) return std::nullopt;
  const auto value = found->second.find(key);
  return value == found->second.end() ? std::nullopt : std::optional(value->second);
}

// Sets the value, or removes it.
void assign(Config::Sections& sections, const std::string& section, const std::string& key,
            const std::optional<std::string>& value) {
  if (value) {
    sections[section][key] = *value;
  } else if (const auto found = sections.find(section); found != sections.end()) {
    found->second.erase(key);
    if (found->second.empty()) sections.erase(found);
  }
}

// The settings that differ.
Config::Names differences(const Config::Sections& before, const Config::Sections& after) {
  Config::Names names;
  for (const auto& [section, keys] : before) {
    for (const auto& [key, value] : keys) {
      if (find(after, section, key) != value) names.emplace_back(section, key);
    }
  }
  for (const auto& [section, keys] : after) {
    for (const auto& [key, value] : keys) {
      if (!find(before, section, key)) names.emplace_back(section, key);
    }
  }
  return names;
}

// Writes a temporary file and renames it to `path`, so that a crash leaves the old file or the new one.
void write_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  written = written && ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (!written || std::rename(fresh.c_str(), path.c_str()) != 0) {
    throw internal_error(fmt::format("Cannot write settings to {}: {}", path, std::strerror(errno)));
  }
}

}  // namespace

void Config::load(const std::string& path) {
  const Sections sections = read_file(path);
  std::lock_guard lock(mutex_);
  merge(values_, sections);
}

void Config::keep_changes_in(const std::string& path) {
  Sections kept;
  if (std::filesystem::exists(path)) kept = read_file(path);
  std::lock_guard lock(mutex_);
  changes_path_ = path;
  changes_ = kept;
  merge(values_, kept);
}

void Config::load_environment(const char* const* environment) {
  constexpr std::string_view kPrefix = "DIVAN_";
  std::lock_guard lock(mutex_);
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string name = lower(variable.substr(kPrefix.size(), equals - kPrefix.size()));
    const std::string value(variable.substr(equals + 1));
    std::size_t split = name.find('_');
    for (const auto& [section, keys] : values_) {
      if (name.starts_with(section + "_")) split = section.size();
    }
    if (split == std::string::npos || split == 0 || split + 1 >= name.size()) continue;
    values_[name.substr(0, split)][name.substr(split + 1)] = value;
  }
}

void Config::override_with(std::string_view section, std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  values_[std::string(section)][std::string(key)] = value;
}

std::optional<std::string> Config::get(std::string_view section, std::string_view key) const {
  std::lock_guard lock(mutex_);
  const auto found = values_.find(std::string(section));
  if (found == values_.end()) return std::nullopt;
  const auto value = found->second.find(std::string(key));
  if (value == found->second.end()) return std::nullopt;
  return value->second;
}

std::string Config::get(std::string_view section, std::string_view key, std::string_view fallback) const {
  return get(section, key).value_or(std::string(fallback));
}

namespace {

// Parses `text`; `fallback` if it is nullopt.
template <class Number>
Number in_range(const std::optional<std::string>& text, std::string_view section, std::string_view key,
                Number fallback, Number min, Number max) {
  if (!text) return fallback;
  Number value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || !(value >= min && value <= max)) {
    throw bad_request(
        fmt::format("Setting [{}] {} = {} is not a number from {} to {}.", section, key, *text, min, max));
  }
  return value;
}

}  // namespace

std::int64_t Config::get_int(std::string_view section, std::string_view key, std::int64_t fallback,
                             std::int64_t min, std::int64_t max) const {
  return in_range(get(section, key), section, key, fallback, min, max);
}

double Config::get_number(std::string_view section, std::string_view key, double fallback, double min,
                          double max) const {
  return in_range(get(section, key), section, key, fallback, min, max);
}

bool Config::get_bool(std::string_view section, std::string_view key, bool fallback) const {
  const auto text = get(section, key);
  if (!text) return fallback;
  if (*text == "true") return true;
  if (*text == "false") return false;
  throw bad_request(
      fmt::format("Setting [{}] {} = {} is invalid; expected true or false.", section, key, *text));
}

Config::Sections Config::all() const {
  std::lock_guard lock(mutex_);
  return values_;
}

std::optional<std::string> Config::set(const std::string& section, const std::string& key,
                                       const std::string& value) {
  if (!ini::can_hold(section, key, value)) {
    throw bad_request(
        "A setting has a section, a key and a value of one line, without white space around them and without "
        "a comment.");
  }
  return change(section, key, value);
}

std::optional<std::string> Config::erase(const std::string& section, const std::string& key) {
  return change(section, key, std::nullopt);
}

std::optional<std::string> Config::change(const std::string& section, const std::string& key,
                                          const std::optional<std::string>& value) {
  // Changes are serialized: otherwise undoing one could undo another, and a listener could be called with the
  // older value last.
  std::lock_guard changing(changing_);
  auto old = get(section, key);
  Sections changes_before;
  {
    std::lock_guard lock(mutex_);
    changes_before = changes_;
    assign(values_, section, key, value);
    assign(changes_, section, key, value);
  }
  try {
    for (const auto& listener : listeners_) listener(section, key);
    write_changes();
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      assign(values_, section, key, old);
      changes_ = changes_before;
    }
    for (const auto& listener : listeners_) listener(section, key);
    throw;
  }
  return old;
}

Config::Names Config::reload(const std::function<void(Config&)>& load,
                             const std::function<bool(const std::string&, const std::string&)>& may_change) {
  std::lock_guard changing(changing_);
  Config fresh;
  load(fresh);
  Sections values = all(), changes = fresh.changes_;
  Names changed, kept;
  for (auto& name : differences(values, fresh.values_)) {
    const auto& [section, key] = name;
    const bool may = may_change(section, key);
    if (may) assign(values, section, key, find(fresh.values_, section, key));
    (may ? changed : kept).push_back(std::move(name));
  }
  const auto exchange = [&] {
    std::lock_guard lock(mutex_);
    values_.swap(values);
    changes_.swap(changes);
  };
  const auto notify = [&] {
    for (const auto& [section, key] : changed) {
      for (const auto& listener : listeners_) listener(section, key);
    }
  };
  exchange();
  try {
    notify();
  } catch (...) {
    exchange();
    notify();
    throw;
  }
  return kept;
}

void Config::write_changes() const {
  if (changes_path_.empty()) return;
  std::string text = "; Settings that were changed at run time.\n";
  {
    std::lock_guard lock(mutex_);
    text += ini::to_text(changes_);
  }
  // Without the lock, since the disk may be slow.
  write_file(changes_path_, text);
}

}  // namespace divan
