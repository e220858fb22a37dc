// The administrators that a server starts with.
#pragma once

#include <optional>
#include <string>

#include "divan/api/accounts.h"
#include "divan/base/config.h"
#include "divan/base/rng.h"

namespace divan::app {

/// Adds the administrators of the settings, and `admin` ("name:password") unless it is empty. If there are
/// none, adds the one that is stored in the data directory. If that does not exist either, generates it and
/// returns the path of the file with its password; otherwise returns an empty string.
std::string choose_admins(api::Accounts& accounts, const Config& config, Rng& rng,
                          const std::string& data_dir, const std::string& admin);

/// The file in the data directory with the administrator's name and password, "name:password".
std::string admin_file(const std::string& data_dir);

/// The first line of a file; nullopt if it cannot be read.
std::optional<std::string> read_line(const std::string& path);

}  // namespace divan::app
