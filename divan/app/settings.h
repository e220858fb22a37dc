// The settings that a server knows: one table, of which defaults, checks, --help and the documentation are
// made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "divan/base/config.h"

namespace divan::app {

/// A setting, "[section] key = value" in a settings file and DIVAN_SECTION_KEY in the environment.
struct Setting {
  std::string section;
  std::string key;
  std::string fallback;  ///< its default
  std::string unit;      ///< "ms", "bytes"; empty: none
  bool live;             ///< a change counts while the server runs; else it is read at the start
  std::string meaning;   ///< a phrase
  std::function<void(const Config&)> check = {};  ///< throws bad_request naming the setting if it is unusable
};

/// All of them. Besides there are the sections [admins] and [ken.ignore], whose keys are names.
const std::vector<Setting>& settings();

/// Sets every setting's default.
void set_defaults(Config& config);

// After set_defaults(). A setting that does not exist is refused: bad_request, with one whose name is near.

void load_settings_file(Config& config, const std::string& path);
/// Config::keep_changes_in(). Settings that do not exist are named in the log and left alone here: earlier
/// versions wrote down whatever they were told.
void load_changes(Config& config, const std::string& path);
/// Variables that begin with DIVAN_ and neither have a section's name nor nearly a setting's are not ours.
void load_environment(Config& config, const char* const* environment);

/// For a change while the server runs: throws bad_request if there is no such setting, its value is unusable,
/// or it is only read at the start. Everything may be removed.
void check_change(const Config& config, const std::string& section, const std::string& key);
void check_all_settings(const Config& config);

/// A table of all settings for --help.
std::string describe_settings();

}  // namespace divan::app
