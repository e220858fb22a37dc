// The administrators that a server starts with.
#pragma once

#include <optional>
#include <string>

#include "divan/api/accounts.h"
#include "divan/base/config.h"
#include "divan/base/rng.h"

namespace divan::app {

/// Adds the administrators of the settings and `admin` ("name:password"; empty: none). If there are neither,
/// the one of the data directory, who is made if there is none: then returns the file that has the new
/// password, else an empty string.
std::string choose_admins(api::Accounts& accounts, const Config& config, Rng& rng,
                          const std::string& data_dir, const std::string& admin);

/// The file in the data directory with the administrator's name and password, "name:password".
std::string admin_file(const std::string& data_dir);

/// The first line of a file; nullopt if it cannot be read.
std::optional<std::string> read_line(const std::string& path);

}  // namespace divan::app
