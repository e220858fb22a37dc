// Files that the commands read and write.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace divan::app {

/// A file that appears under its name when it is complete and synced. Until then its name has the suffix
/// ".part-" and six random characters. Without commit() it is removed, unless the process is killed. "-" is
/// standard output. Not thread-safe.
class NewFile {
 public:
  /// Throws bad_request, with the file's name, if it exists or cannot be created.
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// write() and commit() throw internal_error, with the file's name.
  void write(std::string_view bytes);
  void commit();

 private:
  const std::string path_;
  std::string part_;  // empty: standard output
  int fd_ = -1;
};

/// Reads a file ("-": standard input), and calls `visit` for each piece, with the fraction of the file (0 to
/// 1; negative: unknown) read so far. Throws bad_request, with the file's name, if it cannot be read.
void read_file(const std::string& path,
               const std::function<void(std::string_view piece, double fraction)>& visit);

/// Syncs a directory's entries. Throws internal_error, with its name.
void sync_directory(const std::string& path);

}  // namespace divan::app
