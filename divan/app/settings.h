// The settings that a server knows, with their defaults.
#pragma once

#include <string>

#include "divan/base/config.h"

namespace divan::app {

/// Sets every setting's default.
void set_defaults(Config& config);

/// Refuses values that the server cannot use: throws bad_request naming the setting.
void check_setting(const Config& config, const std::string& section, const std::string& key);
void check_all_settings(const Config& config);

/// A table of all settings for --help and the documentation.
std::string describe_settings();

}  // namespace divan::app
