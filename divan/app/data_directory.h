// What a data directory may be used for.
#pragma once

#include <string>

namespace divan::app {

/// Makes the directory if it is missing, and returns its name. Throws internal_error if it cannot be used.
const std::string& prepared(const std::string& data_dir);

/// The path of the store in a data directory while a backup is being restored into it.
std::string unfinished_restore(const std::string& data_dir);

/// Throws internal_error with instructions if there is an unfinished restore.
void check_no_unfinished_restore(const std::string& data_dir);

}  // namespace divan::app
