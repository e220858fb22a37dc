#include "divan/app/data_directory.h"

#include <fmt/format.h>

#include <filesystem>

#include "divan/base/error.h"

namespace divan::app {
namespace fs = std::filesystem;

std::string unfinished_restore(const std::string& data_dir) { return data_dir + "/store.restoring"; }

void check_no_unfinished_restore(const std::string& data_dir) {
  std::error_code ignored;
  const auto unfinished = unfinished_restore(data_dir);
  if (!fs::exists(unfinished, ignored)) return;
  throw internal_error(fmt::format(
      "Data directory {}: a backup is being restored into it, or the restore was interrupted. If it was "
      "interrupted, remove {} and restore again.",
      data_dir, unfinished));
}

const std::string& prepare_data_directory(const std::string& data_dir) {
  std::error_code error;
  fs::create_directories(data_dir, error);
  if (error) throw internal_error(fmt::format("Data directory {}: {}", data_dir, error.message()));
  check_no_unfinished_restore(data_dir);
  return data_dir;
}

}  // namespace divan::app
