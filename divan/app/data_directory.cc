#include "divan/app/data_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

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

bool create_data_directory(const fs::path& path) {
  std::error_code error;
  fs::path directory = fs::weakly_canonical(path, error);  // without links, and without . at its end
  if (!directory.has_filename()) directory = directory.parent_path();
  if (const auto parent = directory.parent_path(); !error && !parent.empty())
    fs::create_directories(parent, error);
  if (!error && ::mkdir(directory.c_str(), S_IRWXU) == 0) return true;
  if (!error) error.assign(errno, std::generic_category());
  std::error_code ignored;
  if (fs::is_directory(directory, ignored)) return false;
  throw internal_error(fmt::format("Data directory {}: {}", path.string(), error.message()));
}

const std::string& prepare_data_directory(const std::string& data_dir) {
  create_data_directory(data_dir);
  check_no_unfinished_restore(data_dir);
  return data_dir;
}

}  // namespace divan::app
