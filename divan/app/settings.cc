#include "divan/app/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/log.h"

namespace divan::app {
namespace {

constexpr std::string_view kTokenKeys = "jwt_keys";
constexpr std::string_view kAdmins = "admins";

// The section if its keys are arbitrary; otherwise null.
const AnyKeySection* find_any_key(std::string_view section) {
  for (const AnyKeySection& any : any_key_sections()) {
    if (any.section == section) return &any;
  }
  return nullptr;
}

const Setting* find(std::string_view section, std::string_view key) {
  for (const Setting& setting : settings()) {
    if (setting.section == section && setting.key == key) return &setting;
  }
  return nullptr;
}

// The Levenshtein distance: the number of characters to insert, delete or replace.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

std::string name_of(std::string_view section, std::string_view key) {
  return fmt::format("[{}] {}", section, key);
}

std::string variable_of(std::string_view section, std::string_view key) {
  std::string name = fmt::format("DIVAN_{}_{}", section, key);
  for (char& c : name) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}
std::string variable_of(const Setting& setting) { return variable_of(setting.section, setting.key); }

// The setting whose name, as formatted by `write`, is most similar to `name`; null if none is similar.
template <class Write>
const Setting* nearest(std::string_view name, Write&& write) {
  const Setting* best = nullptr;
  std::size_t best_distance = 4;  // a greater distance is not similar
  for (const Setting& setting : settings()) {
    const auto candidate = distance(name, write(setting));
    if (candidate < best_distance) {
      best_distance = candidate;
      best = &setting;
    }
  }
  return best;
}

std::string unknown_setting_message(std::string_view section, std::string_view key) {
  std::string message = fmt::format("Unknown setting {}", name_of(section, key));
  // CouchDB's older names.
  const Setting* near = section == "couch_httpd_auth" ? find("chttpd_auth", key) : nullptr;
  if (near == nullptr)
    near = nearest(name_of(section, key),
                   [](const Setting& setting) { return name_of(setting.section, setting.key); });
  if (near != nullptr) message += fmt::format("; did you mean {}?", name_of(near->section, near->key));
  return message + (near == nullptr ? "." : "");
}

bool exists(std::string_view section, std::string_view key) {
  return find_any_key(section) != nullptr || find(section, key) != nullptr;
}

std::vector<std::string> unknown_settings(const Config& config) {
  std::vector<std::string> unknown;
  for (const auto& [section, keys] : config.all()) {
    for (const auto& [key, value] : keys) {
      if (!exists(section, key)) unknown.push_back(unknown_setting_message(section, key));
    }
  }
  return unknown;
}

// The error for a variable of the environment; nullopt if it is valid, or not Divan's.
std::optional<std::string> variable_error(const std::string& variable) {
  if (!variable.starts_with("DIVAN_")) return std::nullopt;
  for (const AnyKeySection& any : any_key_sections()) {
    if (!variable.starts_with(variable_of(any.section, ""))) continue;
    if (any.section == kAdmins) return std::nullopt;
    return fmt::format("The environment cannot have settings of [{}], as {}: set them in the settings file.",
                       any.section, variable);
  }
  const auto write = [](const Setting& setting) { return variable_of(setting); };
  const Setting* near = nearest(variable, write);
  if (near != nullptr && variable_of(*near) == variable) return std::nullopt;
  const bool of_section = std::any_of(settings().begin(), settings().end(), [&](const Setting& setting) {
    const std::string name = variable_of(setting);
    return variable.starts_with(name.substr(0, name.size() - setting.key.size()));
  });
  if (near == nullptr && !of_section) return std::nullopt;
  std::string message = fmt::format("Unknown setting {} in the environment", variable);
  return message + (near != nullptr ? fmt::format("; did you mean {}?", variable_of(*near)) : ".");
}

}  // namespace

void set_defaults(Config& config) {
  for (const Setting& setting : settings())
    config.override_with(setting.section, setting.key, setting.fallback);
}

void load_settings_file(Config& config, const std::string& path) {
  config.load(path);
  const auto unknown = unknown_settings(config);
  if (!unknown.empty())
    throw bad_request(fmt::format("Settings file {}: {}", path, fmt::join(unknown, "\n")));
}

void load_changes(Config& config, const std::string& path) {
  config.keep_changes_in(path);
  for (const auto& message : unknown_settings(config)) log::warning("{}: {} It is ignored.", path, message);
}

void load_environment(Config& config, const char* const* environment) {
  std::vector<const char*> own;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string variable(entry.substr(0, entry.find('=')));
    if (const auto message = variable_error(variable)) throw bad_request(*message);
    const bool is_own = variable.starts_with(variable_of(kAdmins, "")) ||
                        std::any_of(settings().begin(), settings().end(),
                                    [&](const Setting& setting) { return variable_of(setting) == variable; });
    if (is_own) own.push_back(*environment);
  }
  own.push_back(nullptr);
  config.load_environment(own.data());
}

void check_change(const Config& config, const std::string& section, const std::string& key) {
  if (find_any_key(section) != nullptr && section != kTokenKeys) return;
  const bool is_removed = !config.get(section, key);
  const Setting* setting = find(section, key);
  if (section == kTokenKeys)
    throw bad_request("Keys of JSON Web Tokens are only read at the start: set them in the settings file.");
  if (setting == nullptr) {
    if (is_removed) return;  // older versions accepted unknown settings
    throw bad_request(unknown_setting_message(section, key));
  }
  if (setting->check && !is_removed) setting->check(config);
  if (!setting->live) {
    throw bad_request(
        fmt::format("Setting {} is only read at the start: set it in the settings file, as {} in the "
                    "environment or on the command line, and restart the server.",
                    name_of(section, key), variable_of(*setting)));
  }
}

bool is_live(const std::string& section, const std::string& key) {
  if (const AnyKeySection* any = find_any_key(section)) return any->live;
  const Setting* setting = find(section, key);
  return setting != nullptr && setting->live;
}

void check_all_settings(const Config& config) {
  for (const Setting& setting : settings()) {
    if (setting.check) setting.check(config);
  }
}

std::string settings_json() {
  std::string out;
  json::Writer writer(out);
  writer.begin_array();
  for (const auto& setting : settings()) {
    writer.begin_object().key("section").string(setting.section).key("key").string(setting.key);
    writer.key("default").string(setting.fallback).key("unit").string(setting.unit);
    writer.key("live").boolean(setting.live).key("description").string(setting.description).end_object();
  }
  writer.end_array();
  return out;
}

std::string describe_settings() {
  std::string out;
  for (const Setting& setting : settings()) {
    out += fmt::format("  [{}] {} = {}\n      {}{}\n", setting.section, setting.key, setting.fallback,
                       setting.description, start_note(setting.live));
  }
  for (const AnyKeySection& any : any_key_sections()) {
    out += fmt::format("  [{}] {} = {}\n      {}{}\n", any.section, any.key, any.value, any.description,
                       start_note(any.live));
  }
  return out;
}

}  // namespace divan::app
