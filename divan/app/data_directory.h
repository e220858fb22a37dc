// Prepares data directories, and detects unfinished restores in them.
#pragma once

#include <filesystem>
#include <string>

namespace divan::app {

/// Creates the directory if it is missing, readable by its owner only, since it has passwords' hashes.
/// Returns whether it was missing; throws internal_error if it cannot be created.
bool create_data_directory(const std::filesystem::path& path);

/// Creates the directory if it is missing, and returns `data_dir`. Throws internal_error if the directory
/// cannot be created or has an unfinished restore.
const std::string& prepare_data_directory(const std::string& data_dir);

/// The path of the store in a data directory while a backup is being restored into it.
std::string unfinished_restore(const std::string& data_dir);

/// Throws internal_error, with instructions, if the directory has an unfinished restore.
void check_no_unfinished_restore(const std::string& data_dir);

}  // namespace divan::app
