// The settings of a server: one table from which defaults, checks, --help and the documentation are
// generated.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/config.h"

namespace divan::app {

/// A setting, "[section] key = value" in a settings file and DIVAN_SECTION_KEY in the environment.
struct Setting {
  std::string section;
  std::string key;
  std::string fallback;     ///< the default
  std::string unit;         ///< "ms", "bytes"; empty: none
  bool live;                ///< true: a change takes effect at run time; false: read only at the start
  std::string description;  ///< a phrase
  /// Throws bad_request, with the setting's name, if the value is invalid. Empty: every value is valid.
  std::function<void(const Config&)> check = {};
};

/// A section that accepts any key, such as a name.
struct AnyKeySection {
  std::string section;
  std::string key;    ///< a placeholder: "NAME"
  std::string value;  ///< a placeholder, or the only value
  bool live;          ///< as Setting::live
  std::string description;
  std::string example;  ///< a line of the section
};

/// What documentation adds to the description of a setting.
constexpr std::string_view start_note(bool live) { return live ? "" : " (read at the start)"; }

/// All settings, except those of any_key_sections(). Those of a section are adjacent.
const std::vector<Setting>& settings();
/// All other sections that a server accepts.
const std::vector<AnyKeySection>& any_key_sections();

/// Sets every setting's default.
void set_defaults(Config& config);

// To be called after set_defaults(). Unknown settings are rejected: bad_request, with a suggestion.

void load_settings_file(Config& config, const std::string& path);
/// Calls Config::keep_changes_in(). Unknown settings in the file are logged and ignored, since earlier
/// versions wrote them without a check.
void load_changes(Config& config, const std::string& path);
/// Throws bad_request for a variable that begins with DIVAN_ and is not a setting's, if the name of a section
/// follows or the variable is similar to a setting's. Of any_key_sections(), the environment can have
/// [admins] only. Ignores all other variables.
void load_environment(Config& config, const char* const* environment);

/// Checks a change at run time: throws bad_request if the setting is unknown, its value is invalid, or it is
/// only read at the start. Any setting may be removed.
void check_change(const Config& config, const std::string& section, const std::string& key);
/// Returns true if a change of the setting takes effect while the server runs.
bool is_live(const std::string& section, const std::string& key);
void check_all_settings(const Config& config);

/// All settings, as JSON: an array of {"section", "key", "default", "unit", "live", "description"}.
std::string settings_json();
/// A table of all settings for --help.
std::string describe_settings();

}  // namespace divan::app
